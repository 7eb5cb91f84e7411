# firn's front door; `make help` lists it. How things are made is said in meson.build, what
# `make test` runs in tests/run, what has to be installed in tools/packages.txt.

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
ARGS ?=

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: help deps deps-test build run test test-ui tidy format fuzz demo-bucket demo-cluster bench test-fresh docs install clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

deps: ## install what building and running need and what is missing (root or sudo)
	@tools/deps build

deps-test: ## install what the tests need besides
	@tools/deps build test

build: ## build/firn (the default)
	@tools/as-user tools/build

run: deps build ## profile this host; UI at http://127.0.0.1:7070 (ARGS="..." go to `firn up`)
	@tools/run-as-root build/firn up $(ARGS)

test: deps-test ## all tests (ARGS="--help" says how to run some)
	@tests/run $(ARGS)

test-ui: deps-test build ## the web UI with a million nodes, beside speedscope: minutes, wants a quiet machine
	@FIRN=build/firn tests/e2e/ui_scale
	@tools/run-as-root env FIRN=build/firn FIRN_SPECS=axe.spec.mjs tests/e2e/ui_test

tidy: ## style, layers, spelling, static checks
	@tools/tidy

format: ## lay the sources out with clang-format
	@git ls-files '*.c' '*.h' '*.cc' | xargs clang-format-14 -i

fuzz: deps-test ## each fuzz target for FUZZ_SECONDS (60); ARGS="NAME..." for some
	@tools/as-user env FUZZ_SECONDS=$(FUZZ_SECONDS) tools/fuzz $(ARGS)

demo-bucket: build ## a server and object storage, on this host, until Ctrl-C (ARGS: --servers N)
	@tools/demo bucket $(ARGS)

demo-cluster: build ## two servers over one ClickHouse, on this host, until Ctrl-C (ARGS: --servers N)
	@tools/demo cluster $(ARGS)

bench: deps-test build ## measure, beside perf, bpftrace and others
	@bench/run $(ARGS)

test-fresh: ## everything from nothing, in a bare Debian 12 root (as root)
	@tools/deps fresh
	@tools/test-fresh $(ARGS)

docs: build ## write what is made of the program: docs/options.md
	@build/firn manual --markdown > docs/options.md

install: build ## into DESTDIR and PREFIX
	install -D -m 755 build/firn $(DESTDIR)$(PREFIX)/bin/firn
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/doc/firn README.md CHANGELOG.md LICENSE NOTICE
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,man/man1 bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	build/firn manual > $(DESTDIR)$(PREFIX)/share/man/man1/firn.1
	build/firn completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/firn
	build/firn completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_firn
	build/firn completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/firn.fish

clean: ## forget everything built
	rm -rf build
