# One way to check, here and in continuous integration: make check, and for what only that runs each time: make ci.

STATICCHECK_VERSION := v0.8.2
STATICCHECK := bin/staticcheck-$(STATICCHECK_VERSION)
BENCHSTAT_VERSION := v0.0.0-20260908200009-22c9c6c9d4da
BENCHSTAT := bin/benchstat-$(BENCHSTAT_VERSION)

# VERSION goes into the binary and into the User-Agent header; empty, as outside of a clone: what the Go toolchain knows of it.
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null)
ARGS     ?=
# Packages that start goroutines, in their tests at least: these run with the race detector, which has nothing to find in
# any other package. The first ones take longest, so that no core is idle at the end.
RACING   := ./internal/engine/crawl ./cmd/amble ./internal/service/server ./internal/cluster/shards \
	./internal/modules/urlfrontier/service ./internal/web/fetch ./internal/cluster/clusterapi ./internal/console \
	./internal/testing/crawlcheck ./internal/testing/badsync ./internal/modules/identity \
	./internal/modules/identity/command ./internal/cluster/journal ./internal/cluster/membership \
	./internal/testing/memnet ./internal/cluster/natsconn ./internal/rules/networks ./internal/engine/node \
	./internal/engine/remote ./internal/cluster/routes ./internal/web/spool ./internal/testing/testkit \
	./internal/testing/testweb ./internal/modules/oncomplete ./internal/modules/webhook \
	./internal/engine/crawl/internal/lists ./internal/engine/crawl/internal/work ./politeness
# Packages where only the tests TestConcurrent... start goroutines, or reach code that does.
MIXED    := ./internal/output/archive ./internal/modules/warc/warcfiles ./internal/testing/simulate ./robots ./storage
# How long the tests of a package may take. Only a test that hangs takes as long: a slow machine is no fault.
STUCK    := 30m
# vet is a target of its own. By default, the race detector lets every process wait for a second at its end.
RACE     := CGO_ENABLED=1 GORACE=atexit_sleep_ms=0 go test -race -vet=off -timeout $(STUCK)
# Tests that are too slow with the race detector, and whose goroutines others run with it.
HEAVY    := ^TestHeavy
# Without the path of the clone in it, what was compiled is the same for build, tests and lint, and for all clones.
ifeq (,$(findstring -trimpath,$(GOFLAGS)))
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
endif
BENCH    ?= .
FUZZTIME ?= 30s

.DEFAULT_GOAL := help

.PHONY: help
help: ## say what each target does
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/amble
	go build -ldflags '-X main.version=$(VERSION)' -o bin/amble ./cmd/amble

.PHONY: crawlcheck
crawlcheck: ## build bin/crawlcheck, which grades crawlers
	go build -o bin/crawlcheck ./cmd/crawlcheck

.PHONY: run
run: build ## crawl with config.yaml; ARGS='--set key=value https://example.com/'
	./bin/amble run -c config.yaml $(ARGS)

.PHONY: demo
demo: build ## crawl a small web on loopback addresses, without internet, in under a minute
	./bin/amble demo $(ARGS)

.PHONY: check
check: build ## what every change has to pass: build, gofmt, vet, all tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test vet

.PHONY: ci
ci: check race lint ## check, the race detector and staticcheck, as continuous integration does

.PHONY: test
test: ## run all tests; vet is a target of its own
	go test -vet=off -timeout $(STUCK) $$(go list $(RACING)) $$(go list ./... | grep -vxF "$$(go list $(RACING))")

.PHONY: race
race: ## run the tests of what starts goroutines, with the race detector; needs a C compiler
	$(RACE) -skip '$(HEAVY)' $(RACING)
	$(RACE) -run '^TestConcurrent' $(MIXED)

.PHONY: bench
bench: ## run the benchmarks; BENCH=pattern
	go test -run '^$$' -bench '$(value BENCH)' -benchmem -timeout 60m ./...

REF       ?= HEAD
COUNT     ?= 10
BENCHTIME ?= 1s
PACKAGES  ?= ./...

.PHONY: bench-compare
bench-compare: $(BENCHSTAT) ## compare benchmarks of the commit REF with the work tree; REF=main~1 BENCH=pattern COUNT=10 BENCHTIME=1s PACKAGES=./...
	@.ci/bench-compare '$(REF)' '$(value BENCH)' '$(COUNT)' '$(BENCHTIME)' '$(BENCHSTAT)' $(PACKAGES)

.PHONY: sim
sim: ## simulate two years of recrawls by several policies; writes docs/FRESHNESS.md and docs/freshness
	go run ./internal/testing/simulate $(ARGS)

.PHONY: fuzz
fuzz: ## run every fuzz target in turn; FUZZTIME=30s
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 5s $$package; \
		done; \
	done

.PHONY: soak
soak: ## run the long tests (build tag soak): kill, restart and compare; about two hours on 2 quiet cores, each package four at most
	go test -tags soak -run '^TestSoak' -count 1 -timeout 4h -v ./...

.PHONY: test-real
test-real: build ## crawl what nginx and lighttpd serve, and cut a link between network namespaces (build tag real); installs Debian packages
	go test -tags real -run '^TestReal' -count 1 -timeout 2h -v ./...

.PHONY: test-cluster
test-cluster: ## run the long tests of a cluster (build tag cluster): servers and nodes that are killed, cut off and stopped; under half an hour
	CGO_ENABLED=1 go test -race -tags cluster -run '^TestCluster' -count 1 -timeout 30m -v ./internal/cluster/membership ./internal/cluster/natsconn ./internal/cluster/shards ./cmd/amble

.PHONY: conformance
conformance: ## grade this crawler and others by crawlcheck, for docs/CONFORMANCE.md; ARGS='wget scrapy', RUNS=3, JOBS=4; needs their package managers and an hour
	.ci/conformance/run $(ARGS)

.PHONY: pictures
pictures: ## make the pictures of the dashboard in docs/pictures; needs Chromium
	PICTURES='$(CURDIR)/docs/pictures' BROWSER_TESTS=1 go test -run '^TestDashboard' -count 1 ./internal/service/server

.PHONY: vet
vet: ## gofmt and go vet
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		printf 'gofmt would change these files; run gofmt -w on them:\n%s\n' "$$unformatted"; exit 1; fi
	go vet ./...

.PHONY: lint
lint: vet $(STATICCHECK) ## gofmt, go vet and staticcheck
	$(STATICCHECK) ./...

.PHONY: words
words: ## list old words that docs/GLOSSARY.md replaces; ARGS=-list prints every place, ARGS=-check fails if there is one
	go run ./internal/testing/words $(ARGS)

$(STATICCHECK):
	GOBIN='$(CURDIR)/bin' go install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	mv bin/staticcheck $@

$(BENCHSTAT):
	GOBIN='$(CURDIR)/bin' go install golang.org/x/perf/cmd/benchstat@$(BENCHSTAT_VERSION)
	mv bin/benchstat $@

# Releases are the same bytes whoever builds them: no paths, no times but that of the commit, no owner.
PLATFORMS    := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
DIST         := dist
SBOM         := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
DIST_VERSION := $(or $(VERSION),$(shell git describe --tags --always --dirty 2>/dev/null),dev)
DIST_EPOCH   := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)

PROTO  := internal/modules/urlfrontier/proto
HEALTH := internal/modules/urlfrontier/health
.PHONY: proto
proto: ## generate the messages and handlers of URLFrontier and of gRPC's health service again; needs protoc
	GOBIN='$(CURDIR)/bin' go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12
	GOBIN='$(CURDIR)/bin' go install connectrpc.com/connect/cmd/protoc-gen-connect-go@v1.21.1
	@set -e; generate() { \
		PATH='$(CURDIR)/bin':$$PATH protoc -I $$1 --go_out=$$1 --go_opt=paths=source_relative \
			"--go_opt=M$$2.proto=github.com/amble-crawler/amble/$$1;$$3" --connect-go_out=$$1 \
			--connect-go_opt=paths=source_relative,simple=true,package_suffix= \
			"--connect-go_opt=M$$2.proto=github.com/amble-crawler/amble/$$1;$$3" $$1/$$2.proto; }; \
	generate $(PROTO) urlfrontier urlfrontierpb; generate $(HEALTH) health health

.PHONY: dist
dist: ## build releases for all platforms, with checksums, into dist/
	SOURCE_DATE_EPOCH='$(DIST_EPOCH)' .ci/dist '$(DIST)' '$(DIST_VERSION)' '$(SBOM)' $(PLATFORMS)

.PHONY: dist-check
dist-check: ## build releases twice, the second time elsewhere and from nothing, and compare them
	$(MAKE) dist
	rm -rf bin/again && mkdir -p bin/again/src
	git ls-files -z | tar --null -T - -cf - | tar -C bin/again/src -xf -
	GOCACHE='$(CURDIR)/bin/again/cache' $(MAKE) -C bin/again/src dist VERSION='$(DIST_VERSION)' SOURCE_DATE_EPOCH='$(DIST_EPOCH)'
	diff $(DIST)/SHA256SUMS bin/again/src/dist/SHA256SUMS
	rm -rf bin/again

.PHONY: clean
clean: ## remove what was built; crawled data stays
	rm -rf bin dist
	go clean -testcache
