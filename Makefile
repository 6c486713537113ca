# The two commands of a newcomer: `make run` and `make test`. Everything else is for those who change the code.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: run test lint format lock docs api-reference clients typescript-types messages screenshots docs-screenshots bench corpus fleet torture chart release clean
.DEFAULT_GOAL := run

# A stamp says which lock was installed; a changed lock installs again.
$(VENV)/.runtime: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit("Memory Gateway needs Python 3.11 or newer; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.txt
	@$(BIN)/python deploy/slim.py
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/.bench: requirements-bench.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-bench.txt
	@touch $@

$(VENV)/.docs: requirements-docs.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-docs.txt
	@touch $@

$(VENV)/.release: requirements-release.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-release.txt
	@touch $@

run: $(VENV)/.runtime
	@exec $(BIN)/python manage.py start

# The suite starts a hundred processes: bytecode is kept, whatever the environment says.
test torture: export PYTHONDONTWRITEBYTECODE =

# A file's tests stay on one worker, where they share servers and browsers; the longest files begin (tests/conftest.py).
# Kills, outages, hostile documents and limits of time take as long again: PYTEST_FLAGS='-m "not torture"' runs them too.
test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder -m "not slow and not torture" $(PYTEST_FLAGS)

TEXTS := '*.py' '*.md' '*.html' '*.js' '*.css' '*.po' Makefile .env.example .ci/run ':!*/migrations/*' ':!*/htmx.min.js' ':!.ci/check_language.py'

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy skill/memory-gateway-agent/scripts/memory_gateway.py
	cd clients/python && $(abspath $(BIN))/mypy
	$(BIN)/lint-imports
	git ls-files -z | xargs -0 $(BIN)/codespell
	git ls-files -z -- $(TEXTS) | xargs -0 $(BIN)/python .ci/check_language.py
	git ls-files -z -- 'templates/*.html' | xargs -0 --no-run-if-empty $(BIN)/djade --target-version 5.2 --check
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null
	$(BIN)/python clients/generate.py --check

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# For those who change dependencies; needs uv.
lock:
	uv lock
	uv export --quiet --no-header --no-dev --no-emit-project --format requirements-txt --output-file requirements.txt
	uv export --quiet --no-header --no-dev --all-extras --no-extra lancedb --no-extra local-models --no-extra ocr --no-emit-project --format requirements-txt --output-file requirements-image.txt
	uv export --quiet --no-header --group dev --no-emit-project --format requirements-txt --output-file requirements-dev.txt
	uv export --quiet --no-header --no-default-groups --group bench --no-emit-project --format requirements-txt --output-file requirements-bench.txt
	uv export --quiet --no-header --only-group chart --no-emit-project --format requirements-txt --output-file requirements-chart.txt
	uv export --quiet --no-header --only-group docs --no-emit-project --format requirements-txt --output-file requirements-docs.txt
	uv export --quiet --no-header --only-group release --no-emit-project --format requirements-txt --output-file requirements-release.txt

# The documentation as a site in build/docs. A warning, such as a link to a page or heading that is absent, is an error.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx --quiet --nitpicky --fail-on-warning --keep-going --fresh-env --write-all --doctree-dir build/doctrees docs build/docs
	@echo "The documentation is in build/docs/index.html."

# The agent skill's reference, written from the OpenAPI document; a test fails where it differs.
api-reference: $(VENV)/.dev
	$(BIN)/python manage.py write_api_reference

# The Python client's models and endpoints and the skill's operations, from the OpenAPI document; `make lint` fails where they differ.
clients: $(VENV)/.dev
	$(BIN)/python clients/generate.py

# The types of the TypeScript client, from the OpenAPI document; a test fails where they differ. Needs npm.
typescript-types: $(VENV)/.dev
	mkdir -p build
	$(BIN)/python manage.py spectacular --format openapi-json --file build/openapi.json
	cd clients/typescript && npm ci --ignore-scripts --no-audit --no-fund && npm run generate

# The panel's words: finds new ones in the code, and compiles what locale/zh_Hans/LC_MESSAGES/django.po says. Needs gettext.
messages: $(VENV)/.dev
	$(BIN)/python manage.py makemessages --locale zh_Hans --no-obsolete --no-wrap --add-location file --ignore '.venv*' --ignore 'tests/*' --ignore 'build/*'
	$(BIN)/python manage.py compilemessages --locale zh_Hans --ignore '.venv*'

# Every page of the panel in both languages and themes, wide and narrow, into build/screenshots.
screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.console.screenshots build/screenshots

# The pictures that the documentation shows.
docs-screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.console.screenshots --docs docs/_static

# Compare the words read of files with other readers; CORPUS names folders with more files, KINDS the endings.
corpus: $(VENV)/.dev
	$(BIN)/python -m benchmarks readings $(CORPUS) $(if $(KINDS),--kinds $(KINDS))

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(BENCH)

torture: $(VENV)/.dev
	$(BIN)/python -m pytest -m torture

# Three gateways and two workers behind HAProxy, on PostgreSQL (DATABASE_URL), PgBouncer, Redis and an S3 stand-in.
fleet: $(VENV)/.dev
	@exec $(BIN)/python -m tests.fleet

build/chart/.installed: requirements-chart.txt
	$(PYTHON) -m venv build/chart
	build/chart/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-chart.txt
	@touch $@

# Renders the Helm chart and checks what comes out.
chart: build/chart/.installed $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses 0 tests/deploy/test_chart.py

# Source archive, bill of materials, licenses, audit and checksums of the last commit, in dist/. The audit needs network.
release: $(VENV)/.release
	$(BIN)/python release.py

clean:
	rm -rf $(VENV) dist staticfiles .mypy_cache .ruff_cache .pytest_cache
