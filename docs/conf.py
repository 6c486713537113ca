"""Settings of the documentation site. `make docs` builds it into build/docs."""

project = "Memory Gateway"
author = "The Memory Gateway authors"
project_copyright = author
language = "en"

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["examples"]
myst_enable_extensions = ["colon_fence"]
# Every heading down to this level can be linked to, under the name that GitHub gives it.
myst_heading_anchors = 3
# Pages of the repository outside docs/ are included or named by their path, never linked.
nitpicky = True

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"top_of_page_buttons": []}
