# The two commands of a newcomer: `make run` and `make test`. Everything else is for those who change the code.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: run test lint format lock api-reference messages screenshots bench torture clean
.DEFAULT_GOAL := run

# A stamp says which lock was installed; a changed lock installs again.
$(VENV)/.runtime: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit("Memory Gateway needs Python 3.11 or newer; set PYTHON=/path/to/python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@touch $@

$(VENV)/.bench: requirements-bench.txt $(VENV)/.runtime
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.txt
	@touch $@

run: $(VENV)/.runtime
	@$(BIN)/python manage.py migrate --verbosity 0
	@$(BIN)/python manage.py rebuild_index --quiet
	@$(BIN)/python manage.py ensure_operator
	@exec $(BIN)/python manage.py serve

# Browsers and servers of three tests at once can take a small machine's time away for longer than a test waits: what
# failed beside others is run once more alone, and has to pass there.
test: $(VENV)/.dev
	$(BIN)/python -m pytest --numprocesses 3 --dist loadfile --no-loadscope-reorder $(PYTEST_FLAGS) || { \
	  [ $$? -eq 1 ] && printf '\n== what failed beside others, once more alone\n' && \
	  $(BIN)/python -m pytest $(PYTEST_FLAGS) --numprocesses 0 --last-failed --maxfail 5; }

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy skill/memory-gateway-agent/scripts/memory_gateway.py
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --severity-level medium --recursive --configfile pyproject.toml memory_gateway console agents operations memories profiles resources engines store documents accounts core
	git ls-files -z -- 'templates/*.html' | xargs -0 --no-run-if-empty $(BIN)/djade --target-version 5.2 --check
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# For those who change dependencies; needs uv.
lock:
	uv lock
	uv export --quiet --no-header --no-dev --no-emit-project --format requirements-txt --output-file requirements.txt
	uv export --quiet --no-header --group dev --no-emit-project --format requirements-txt --output-file requirements-dev.txt
	uv export --quiet --no-header --no-default-groups --group bench --no-emit-project --format requirements-txt --output-file requirements-bench.txt

# The agent skill's reference, written from the OpenAPI document; a test fails where it differs.
api-reference: $(VENV)/.dev
	$(BIN)/python manage.py write_api_reference

# The panel's words: finds new ones in the code, and compiles what locale/zh_Hans/LC_MESSAGES/django.po says. Needs gettext.
messages: $(VENV)/.dev
	$(BIN)/python manage.py makemessages --locale zh_Hans --no-obsolete --no-wrap --add-location file --ignore '.venv*' --ignore 'tests/*' --ignore 'build/*'
	$(BIN)/python manage.py compilemessages --locale zh_Hans --ignore '.venv*'

# Every page of the panel in both languages and themes, wide and narrow, into build/screenshots.
screenshots: $(VENV)/.dev
	$(BIN)/python -m tests.console.screenshots build/screenshots

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(BENCH)

torture: $(VENV)/.dev
	$(BIN)/python -m pytest -m torture

clean:
	rm -rf $(VENV) staticfiles .mypy_cache .ruff_cache .pytest_cache
