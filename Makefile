# The targets that developers and CI run. `make test` runs every test that needs no GPU, `make quick` those of two minutes;
# each leg of the tests is a target as well (`make nvim`): scripts/test.sh lists them.
legs := $(shell scripts/test.sh --list)
.PHONY: test quick full $(legs) bench bench-lsp bench-cpu bench-sparse bench-dist bench-renew gpu models fmt generate

test:
	@scripts/test.sh
quick:
	@scripts/test.sh check unit
full: ## the Go tests with every row of the tables whose rows take turns, and every scene of VS Code
	@DMIR_TURN=all scripts/test.sh go vscode
$(legs):
	@scripts/test.sh $@

bench: ## wall time and memory compared with mlir-opt, on this machine
	scripts/bench.sh
bench-lsp: ## the language server compared with mlir-lsp-server; fmt and lint over the conformance inputs
	scripts/bench-lsp.sh
bench-cpu: ## programs on this machine's processor compared with OpenBLAS, PyTorch and ONNX Runtime
	scripts/bench-cpu.sh

bench-sparse: ## products with sparse matrices compared with SciPy, PyTorch and MLIR's sparsifier
	scripts/bench-sparse.sh
bench-dist: ## bytes that devices send in divided programs compared with XLA's partitioner
	scripts/bench-dist.sh
bench-renew: ## bench/results renewed on this machine; lists what is worse than what was committed
	scripts/bench-renew.sh
gpu: ## 12 minutes of the local NVIDIA card: what it computes right, and predicted and measured times beside its peers
	scripts/gpu.sh

models: ## models of JAX and PyTorch, imported, run, costed and compiled: the tables of docs/MODELS.md; models trained as PyTorch trains them: docs/TRAINING.md; exported plans run: docs/PLANNING.md
	scripts/models.sh

fmt:
	gofmt -w $$(git ls-files '*.go')
	go run . fmt examples
generate: ## docs and goldens that are generated from the code
	go generate ./...
