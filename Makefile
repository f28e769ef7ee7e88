# Everything from a fresh clone: `make demo` runs the main job end to end, `make test` passes the tests.
PYTHON ?= python3
BIN := .venv/bin
COMPILE := --generate-hashes --universal --no-header --python-version 3.11
ROOMS := attestations ledger contracts cuda_restore migrations apps tests

.PHONY: demo test test-extended lint wheel clean bench-ledger bench-restore device-check requirements

demo: .venv/ready
	@rm -rf demo
	@$(BIN)/countermark demo demo

test: .venv/ready
	@$(BIN)/pytest -n auto --maxprocesses 8 -m "not slow and not gpu" $(PYTEST_ARGS)

test-extended: .venv/ready
	@$(BIN)/pytest -n auto --maxprocesses 8 -m "not gpu" $(PYTEST_ARGS)

lint: .venv/ready
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

wheel: .venv/ready
	@rm -rf dist && $(BIN)/hatchling build -t wheel

bench-ledger: .venv/ready
	@$(BIN)/python -m benchmarks.ledger $(BENCH_ARGS)

bench-restore: .venv/ready
	@$(BIN)/python -m benchmarks.restore $(BENCH_ARGS)

device-check: .venv/ready
	@$(BIN)/python -m benchmarks.device_check $(BENCH_ARGS)

# Compiled files are made at once: without them every start of the program takes three times as long.
.venv/ready: requirements-dev.txt pyproject.toml
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q -j 0 .venv/lib $(ROOMS) || true
	@touch $@

# Pins every dependency again, with hashes; needs uv (not for anything else). What is pinned stays unless it must move.
requirements:
	@uv pip compile -q pyproject.toml --group dev $(COMPILE) -o requirements-dev.txt
	@uv pip compile -q pyproject.toml -c requirements-dev.txt $(COMPILE) -o requirements.txt
	@uv pip compile -q pyproject.toml -c requirements-dev.txt --extra cuda $(COMPILE) -o requirements-cuda.txt
	@uv pip compile -q pyproject.toml -c requirements-dev.txt --extra hsm $(COMPILE) -o requirements-hsm.txt

clean:
	@rm -rf .venv demo dist
