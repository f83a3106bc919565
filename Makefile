# The targets that developers and CI run. `make test` runs every test that needs no GPU.
.PHONY: test go-test race fuzz cross pages vscode nvim tree-sitter helix emacs pre-commit actions bench bench-lsp gpu fmt generate

test: go-test race fuzz cross pages vscode nvim tree-sitter helix emacs pre-commit actions

go-test: ## vet, formatting, staticcheck, unit, golden, differential, conformance and interop tests
	scripts/test-go.sh
race:
	scripts/test-race.sh
fuzz: ## a fixed number of inputs for each fuzz target
	scripts/fuzz.sh
cross: ## builds without cgo on every supported platform
	scripts/cross-build.sh
pages: ## the panels in a real browser
	scripts/test-pages.sh
vscode:
	scripts/test-vscode.sh
nvim:
	scripts/test-nvim.sh
tree-sitter: ## the grammar, compared with dmir's own parser
	scripts/test-tree-sitter.sh
helix:
	scripts/test-helix.sh
emacs:
	scripts/test-emacs.sh
pre-commit:
	scripts/test-precommit.sh
actions: ## the GitHub workflows of docs/EDITORS.md
	scripts/test-actions.sh

bench: ## wall time and memory compared with mlir-opt, on this machine
	scripts/bench.sh
bench-lsp: ## the language server compared with mlir-lsp-server; fmt and lint over the conformance inputs
	scripts/bench-lsp.sh
gpu: ## predicted and measured times on the local NVIDIA card
	scripts/gpu.sh

fmt:
	gofmt -w $$(git ls-files '*.go')
	go run . fmt examples
generate: ## docs and goldens that are generated from the code
	go generate ./...
