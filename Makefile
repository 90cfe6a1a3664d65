# Two commands do all the set-up: `make demo` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
TORCH  ?= torch==2.13.0
JOBS   ?= 2

.PHONY: demo test test-c test-py nightly check format sanitize fuzz bench docs clean install

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: test-c test-py

test-c: $(VENV)/.tools
	$(BIN)/cmake -S . -B build-tests -G Ninja -DTT_BRIDGE=OFF -DTT_TESTS=ON \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja
	$(BIN)/cmake --build build-tests -j $(JOBS)
	$(BIN)/ctest --test-dir build-tests --output-on-failure -j $(JOBS)

test-py: $(VENV)/.installed
	$(BIN)/pytest tests -q -m "not slow" -n $(JOBS)

# The slow sweeps; their result is committed under docs/reports.
nightly: $(VENV)/.installed
	$(BIN)/pytest tests -q -n $(JOBS)
	$(BIN)/python tools/conformance.py --report docs/conformance.md

check: $(VENV)/.tools
	$(BIN)/python tools/check.py

format: $(VENV)/.tools
	$(BIN)/clang-format -i $$(git ls-files 'src/*.[ch]' 'bridge/*.cpp' 'bridge/*.hpp' 'tests/c/*.[ch]')
	$(BIN)/ruff format .

# The C tests under ASan+UBSan, then under TSan.
sanitize: $(VENV)/.tools
	for kind in address,undefined thread; do \
	  $(BIN)/cmake -S . -B build-$${kind%%,*} -G Ninja -DTT_BRIDGE=OFF -DTT_TESTS=ON \
	    -DTT_SANITIZE=$$kind -DCMAKE_BUILD_TYPE=RelWithDebInfo \
	    -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja && \
	  $(BIN)/cmake --build build-$${kind%%,*} -j $(JOBS) && \
	  $(BIN)/ctest --test-dir build-$${kind%%,*} --output-on-failure -j $(JOBS) || exit 1; \
	done

bench: $(VENV)/.installed
	$(BIN)/python bench/run.py
	$(BIN)/python bench/compile.py

docs: $(VENV)/.installed
	$(BIN)/python -m pip install -q mkdocs-material
	$(BIN)/mkdocs build --strict

install: $(VENV)/.installed

$(VENV)/.tools: requirements-dev.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q '$(TORCH)' numpy
	$(BIN)/python -m pip install -q -r requirements-dev.txt
	touch $@

# Built against the torch that is installed, so without build isolation.
$(VENV)/.installed: $(VENV)/.tools pyproject.toml CMakeLists.txt \
    $(shell find src bridge torchtpu -type f -not -name '*.so' -not -name '*.pyc')
	$(BIN)/python -m pip install -q --no-build-isolation --no-deps --force-reinstall .
	touch $@

clean:
	rm -rf build-* $(VENV) dist site out
