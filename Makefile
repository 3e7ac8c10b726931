# What a developer and the CI run. Everything else is plain `go`.

GO       ?= go
FUZZTIME ?= 30s
BENCHTIME ?= 1s
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null)
COMMIT   ?= $(shell git rev-parse HEAD 2>/dev/null)
LDFLAGS  := -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)
LINT     := $(GO) tool -modfile=.ci/tools/go.mod golangci-lint

.PHONY: build test model check bench compare soak fuzz needs

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

# needs installs what the tests start for real, or says how.
needs:
	@.ci/needs

# What allocates nothing does so without the race detector, whose pools forget on purpose.
test: needs
	$(GO) test -run Alloc ./rules ./gate ./gate/decision ./gate/lograte
	$(GO) test -race -timeout 20m ./...

# model explores every interleaving of small cases with the real scripts; test does so
# with the smallest of them. It takes minutes.
model: needs
	SLOTGATE_MODEL=full $(GO) test -timeout 1h -p 1 -count 1 -v -run '^TestInterleavings' ./gate/store/memstore ./gate/store/redisstore

check:
	@unformatted=$$(gofmt -l $$(git ls-files --cached --others --exclude-standard '*.go')); \
	if [ -n "$$unformatted" ]; then echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; fi
	$(GO) mod tidy -diff
	$(GO) vet ./...
	$(LINT) run --allow-parallel-runners

bench: needs
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) -p 1 ./...

# compare measures the gate beside its peers and writes deploy/bench/results. It takes
# half an hour of a machine that does nothing else; see deploy/bench/README.md for parts.
compare:
	@deploy/bench/needs
	$(GO) run ./deploy/bench compare
	$(GO) run ./deploy/bench growth
	$(GO) run ./deploy/bench relief

# soak repeats the race tests for long; tests read SLOTGATE_SOAK to widen what
# they try (more seeds, longer storms).
soak: needs
	SLOTGATE_SOAK=1 $(GO) test -race -timeout 4h -p 1 -count 1 ./...

# fuzz runs every fuzz target for FUZZTIME; go test fuzzes one target at a time.
fuzz:
	@for file in $$(grep -rl --include='*_test.go' '^func Fuzz' cmd gate rules luascripts); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' $$file); do \
			echo "== ./$$(dirname $$file) $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) ./$$(dirname $$file) || exit 1; \
		done; \
	done
