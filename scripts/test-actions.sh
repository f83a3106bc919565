#!/usr/bin/env bash
# Tests GitHub workflows: actionlint checks those of this repository and of docs/CI.md, and the commands of the latter work in
# a repository with wasted data movement. The effects of steps that only GitHub can run are simulated.
set -euo pipefail
. "$(dirname "$0")/common.sh"
actionlint=github.com/rhysd/actionlint/cmd/actionlint@v1.7.8

want git git
want python3 python3
command -v go >/dev/null || cannot "install Go and run this again"
python3 -c 'import yaml' 2>/dev/null || {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && alone apt_install python3-yaml >/dev/null 2>&1
  python3 -c 'import yaml' 2>/dev/null || cannot "install PyYAML (python3-yaml) and run this again"
}

want pip3 python3-pip
python3 -c 'import ensurepip' 2>/dev/null || want python3-venv python3-venv
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch" 2>/dev/null || true' EXIT
export GIT_CONFIG_GLOBAL=$scratch/gitconfig GIT_CONFIG_NOSYSTEM=1 PATH=$scratch/bin:$PATH
git config --global user.name test
git config --global user.email test@example.invalid
git config --global init.defaultBranch main

# A repository whose main branch has no wasted movement, on a branch that adds some.
project=$scratch/project
workspace=$root/vscode-extension/test/workspace
git init --quiet "$project"
cd "$project"
python3 - "$workspace/ffn.dmir" >ffn.dmir <<'END'
import sys
print("// The same with the chain as one kernel." + open(sys.argv[1]).read().split("// The same with the chain as one kernel.")[1].replace("@ffn_fused", "@ffn"), end="")
END
git add .
git commit --quiet --message 'one kernel'
git update-ref refs/remotes/origin/main HEAD
git checkout --quiet -b change
python3 - "$workspace/ffn.dmir" >ffn.dmir <<'END'
import sys
# The compiler fuses the chain again, so that the gate is told of a larger batch.
print(open(sys.argv[1]).read().split("\n// The same")[0].replace("8x64x", "64x64x"), end="")
END
cp "$workspace/messy.dmir" "$workspace/kernel.dmir" .
git add .
git commit --quiet --message 'through memory'

# steps N: writes the commands of the N-th workflow of the page to one file each, in order; checks that its "uses" are known.
python3 - "$root/docs/CI.md" "$scratch" <<'END'
import pathlib, re, sys, yaml
page, out = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
known = {"actions/checkout", "github/codeql-action/upload-sarif"}
workflows = [w for w in map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.S)) if "jobs" in w]
assert len(workflows) == 2, f"{len(workflows)} workflows"
for number, workflow in enumerate(workflows, 1):
    (out / f"workflow{number}.yml").write_text(yaml.safe_dump({"on" if k is True else k: v for k, v in workflow.items()}))
    assert True in workflow or "on" in workflow, "no trigger"  # YAML 1.1 reads "on" as true
    (job,) = workflow["jobs"].values()
    folder = out / f"workflow{number}"
    folder.mkdir()
    for i, step in enumerate(job["steps"]):
        assert ("uses" in step) != ("run" in step), step
        if "uses" in step:
            name, version = step["uses"].split("@")
            assert name in known and re.fullmatch(r"v\d+", version), step
            if name.endswith("upload-sarif"):
                (out / "sarif-file").write_text(step["with"]["sarif_file"])
        else:
            (folder / f"{i:02}").write_text(step["run"] + "\n")
END

# The repository's own workflows: each action is a commit, and what runs code of the repository or of its dependencies has no right
# to write and no token in its environment.
python3 - "$root" <<'END'
import pathlib, re, sys, yaml
for file in pathlib.Path(sys.argv[1], ".github/workflows").glob("*.yml"):
    workflow = yaml.safe_load(file.read_text())
    for name, job in workflow["jobs"].items():
        rights = job.get("permissions", workflow["permissions"])
        builds = any(re.search(r"scripts/|make |go run|npm ", step.get("run", "")) for step in job["steps"])
        for step in job["steps"]:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + "0" * 40)), f"{file.name}: {step['uses']} is no commit"
            assert "--preserve-env" not in step.get("run", "") and "sudo -E" not in step.get("run", ""), f"{file.name}: {step}"
            assert not builds or "token" not in str(step.get("env", "")).lower(), f"{file.name}: {name} has a token"
        assert not builds or "write" not in rights.values(), f"{file.name}: {name} builds with the right to write"
END

(cd "$root" && go run "$actionlint" -no-color -shellcheck= -pyflakes= .github/workflows/*.yml "$scratch"/workflow*.yml)

# The runner's Python, whose pip finds the wheel of this repository and nothing else.
python3 -m venv "$scratch" || cannot "python3 -m venv failed"
build_wheel 0.0.0-dev "$scratch/wheels"
export PIP_NO_INDEX=1 PIP_FIND_LINKS=$scratch/wheels PIP_PRE=1 PIP_DISABLE_PIP_VERSION_CHECK=1

# run WORKFLOW COMMAND: runs the step of the workflow that contains the command, as GitHub's shell does; sets $status to its
# exit status and writes its output to $log.
log=$scratch/log
run() {
  local step
  step=$(grep -lF -- "$2" "$scratch/workflow$1"/* | head -1)
  status=0
  (cd "$project" && GITHUB_BASE_REF=main bash --noprofile --norc -e -o pipefail "$step") >"$log" 2>&1 || status=$?
}

failed=0
check() { # check WHAT CONDITION...
  local what=$1
  shift
  if "$@"; then
    echo "  ok   $what"
  else
    echo "  FAIL $what"
    tail -20 "$log" | sed 's/^/       /'
    failed=1
  fi
}

for workflow in 1 2; do
  run $workflow 'pip install dmir'
  check "workflow $workflow installs dmir" [ "$status" = 0 ]
  check "  as the program that runs" [ "$(command -v dmir)" = "$scratch/bin/dmir" ]
done

run 1 '--output-format sarif'
check "lint stops the job for a finding" [ "$status" = 1 ]
check "  and has written what is uploaded" python3 - "$project/$(cat "$scratch/sarif-file")" <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["version"] == "2.1.0" and "sarif-schema-2.1.0" in report["$schema"]
(run,) = report["runs"]
rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
assert run["results"]
for result in run["results"]:
    assert result["ruleId"] in rules and result["level"] in ("note", "warning", "error"), result
    (place,) = result["locations"]
    place = place["physicalLocation"]
    # Code scanning needs paths relative to the root of the repository.
    assert place["artifactLocation"]["uri"] == "kernel.dmir" and place["region"]["startLine"] > 0, place
END

run 2 'fmt --check'
check "fmt --check stops the job and names the file" grep -q messy.dmir "$log"
check "  and fails" [ "$status" != 0 ]
run 2 'lint --output-format github'
check "lint marks the line of a finding" grep -Eq '^::warning file=kernel\.dmir,line=[0-9]+,.*DM201' "$log"
run 2 'dmir diff'
check "diff stops the job where more is moved than before" grep -Eq '^::(error|warning) .*ffn' "$log"
check "  and not for nothing" [ "$status" != 0 ]
(cd "$project" && git checkout --quiet origin/main -- ffn.dmir && dmir fmt messy.dmir && dmir lint --fix kernel.dmir && git commit --quiet --all --message 'one kernel again')
for step in 'fmt --check' 'lint --output-format github' 'dmir diff'; do
  run 2 "$step"
  check "a change without waste passes: $step" [ "$status" = 0 ]
done
exit $failed
