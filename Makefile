# One way to check, here and in continuous integration: make check.

STATICCHECK_VERSION := v0.8.2
STATICCHECK := bin/staticcheck-$(STATICCHECK_VERSION)

# VERSION goes into the binary and into the User-Agent header; empty: what the Go toolchain knows of it.
VERSION  ?=
ARGS     ?=
BENCH    ?= .
FUZZTIME ?= 30s

.DEFAULT_GOAL := help

.PHONY: help
help: ## say what each target does
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/amble
	go build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/amble ./cmd/amble

.PHONY: run
run: build ## crawl with config.yaml; ARGS='--set key=value https://example.com/'
	./bin/amble run -c config.yaml $(ARGS)

.PHONY: demo
demo: build ## crawl a small web on loopback addresses, without internet, in under a minute
	./bin/amble demo $(ARGS)

.PHONY: check
check: build lint race ## everything a change has to pass: build, gofmt, vet, staticcheck, tests with -race

.PHONY: test
test: ## run the tests
	go test ./...

.PHONY: race
race: ## run the tests with the race detector; needs a C compiler
	CGO_ENABLED=1 go test -race ./...

.PHONY: bench
bench: ## run the benchmarks; BENCH=pattern
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 60m ./...

.PHONY: sim
sim: ## simulate two years of renewals by several policies; writes docs/FRESHNESS.md and docs/freshness
	go run ./internal/simulate $(ARGS)

.PHONY: fuzz
fuzz: ## run every fuzz target in turn; FUZZTIME=30s
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s $$package; \
		done; \
	done

.PHONY: soak
soak: ## run the long tests (build tag soak): kill, restart and compare, for as long as it takes
	go test -tags soak -run '^TestSoak' -count 1 -timeout 4h -v ./...

.PHONY: test-real
test-real: build ## crawl what nginx and lighttpd serve (build tag real); installs Debian packages
	go test -tags real -run '^TestReal' -count 1 -timeout 2h -v ./...

.PHONY: pictures
pictures: ## make the pictures of the dashboard in docs/pictures; needs Chromium
	AMBLE_PICTURES='$(CURDIR)/docs/pictures' AMBLE_BROWSER=1 go test -run '^TestDashboard' -count 1 ./internal/server

.PHONY: lint
lint: $(STATICCHECK) ## gofmt, go vet and staticcheck
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		printf 'gofmt would change these files; run gofmt -w on them:\n%s\n' "$$unformatted"; exit 1; fi
	go vet ./...
	$(STATICCHECK) ./...

$(STATICCHECK):
	GOBIN='$(CURDIR)/bin' go install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	mv bin/staticcheck $@

.PHONY: clean
clean: ## remove what was built; crawled data stays
	rm -rf bin dist
	go clean -testcache
