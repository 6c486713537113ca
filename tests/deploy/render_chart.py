"""Render the chart by Helm's own code, check each object by Kubernetes' schemas, and print them as JSON.

Run by the Python of `make chart`'s environment, with values as JSON on standard input. Prints the sentence of a refusal
on standard error and ends with 1.
"""

import json
import sys
from pathlib import Path

import helm_python
import kubernetes_validate
import yaml

CHART = Path(__file__).parents[2] / "deploy" / "chart"
OLDEST, NEWEST = "1.27", "1.34"


def main() -> int:
    values = json.load(sys.stdin)
    try:
        with helm_python.Chart.load(str(CHART)) as chart:
            chart.validate_schema(values)
            files = chart.render(values, name="demo", namespace="prod")
    except helm_python.HelmError as error:
        sys.stderr.write(str(error))
        return 1
    texts = [text for name, text in files.items() if not name.endswith(".txt")]
    objects = [found for text in texts for found in yaml.safe_load_all(text) if found]
    for found in objects:
        for version in (OLDEST, NEWEST):
            kubernetes_validate.validate(found, version, strict=True)
    problems = [one for one in helm_python.lint(str(CHART), values)["messages"] if one["severity"] > 1]
    json.dump({"objects": objects, "problems": problems}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
