"""Files for SLURM and Kubernetes, as far as they can be tried without either: their commands run,
their parts fit.
"""

import os
import re
import shlex
import stat

import numpy as np
import pytest
import yaml
from chapters import ROOT

from experiments.methods import joined_processes
from tests.launch import LIMIT, starting

FOLDER = ROOT / "experiments/pages/scaling_out"
SMALL = "--data-size 64 --chains 2 --warmup 20 --samples 5 --devices 1 --every 5 --limit 200"
# As SLURM's: the command once for each task, each with the variables that SLURM sets and JAX reads.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for task in 0 1; do
  SLURM_PROCID=$task SLURM_LOCALID=$task SLURM_NTASKS=2 \\
    SLURM_STEP_NODELIST=localhost SLURM_STEP_NUM_NODES=1 "$@" &
done
wait -n; first=$?; wait -n; exit $((first + $?))
"""


@pytest.fixture
def start(tmp_path):
    with starting(tmp_path) as begin:
        yield begin


@pytest.fixture
def path(tmp_path):
    """PATH on which srun is the one above."""
    srun = tmp_path / "srun"
    srun.write_text(SRUN)
    srun.chmod(srun.stat().st_mode | stat.S_IEXEC)
    return f"{tmp_path}:{os.environ['PATH']}"


def options(name):
    """The options of a batch script."""
    return dict(
        re.findall(r"^#SBATCH --([a-z-]+)(?:=(\S+))?$", (FOLDER / name).read_text(), flags=re.M)
    )


def test_the_batch_script_of_a_fit_runs_over_two_tasks(start, path, tmp_path):
    # JAX takes the coordinator's port from the number of the job.
    number = {
        "SLURM_JOB_ID": str(int(joined_processes.address().split(":")[1])),
        "PATH": path,
        "SLURM_CPUS_PER_TASK": "1",
    }
    script, run = str(FOLDER / "fit.sbatch"), str(tmp_path / "run")
    process, log = start(script, command=("bash",), RUN=run, MORE=SMALL, **number)
    assert process.wait(LIMIT) == 0, log.read_text()
    with np.load(tmp_path / "run/draws.npz") as arrays:
        assert (
            arrays["stats/log_density"].shape == (2, 5)
            and np.isfinite(arrays["stats/log_density"]).all()
        )


def test_the_batch_script_of_a_sweep_runs_on_two_workers(start, path, tmp_path):
    number = {"PORT": joined_processes.address().split(":")[1], "PATH": path, "GROUPS_TO_FIT": "2"}
    process, log = start(str(FOLDER / "sweep.sbatch"), command=("bash",), **number)
    assert process.wait(LIMIT) == 0, log.read_text()
    assert " workers at tcp" in log.read_text() and "2 of 2 groups" in log.read_text()


@pytest.mark.parametrize("name", ["fit.sbatch", "sweep.sbatch"])
def test_a_batch_script_asks_for_what_slurm_knows(name):
    known = "job-name nodes ntasks-per-node cpus-per-task time requeue open-mode output"
    found = options(name)
    assert set(found) <= set(known.split()) and {
        "nodes",
        "ntasks-per-node",
        "cpus-per-task",
        "time",
    } <= set(found)
    lines = (FOLDER / name).read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert lines[0] == "#!/bin/bash" and not [
        line for line in lines[first:] if line.startswith("#SBATCH")
    ]


def test_the_parts_of_the_job_for_kubernetes_fit_together():
    service, job = yaml.safe_load_all((FOLDER / "fit.yaml").read_text())
    assert [(one["apiVersion"], one["kind"]) for one in (service, job)] == [
        ("v1", "Service"),
        ("batch/v1", "Job"),
    ]
    name, spec = job["metadata"]["name"], job["spec"]
    pod = spec["template"]["spec"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {
        "job-name": name
    }
    assert (
        service["spec"]["publishNotReadyAddresses"]
        and pod["subdomain"] == service["metadata"]["name"]
    )
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
    (container,) = pod["containers"]
    given = dict(one.removeprefix("--").split("=") for one in container["args"])
    assert int(given["processes"]) == spec["completions"] and given["number"] == "$(NUMBER)"
    assert given["coordinator"].split(":")[0] == f"{name}-0.{pod['subdomain']}"
    assert int(given["chains"]) % (int(given["devices"]) * spec["completions"]) == 0
    assert container["resources"]["limits"]["cpu"] == given["devices"]
    (variable,) = container["env"]
    field = variable["valueFrom"]["fieldRef"]["fieldPath"]
    assert (variable["name"], field) == (
        "NUMBER",
        "metadata.annotations['batch.kubernetes.io/job-completion-index']",
    )
    (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
    assert mount["name"] == volume["name"] and container["command"][-1].startswith(
        mount["mountPath"]
    )


def test_the_command_of_a_pod_runs_in_two_processes(start, tmp_path):
    *_, job = yaml.safe_load_all((FOLDER / "fit.yaml").read_text())
    (container,), at = job["spec"]["template"]["spec"]["containers"], joined_processes.address()
    here = {"--processes": "2", "--coordinator": at}
    arguments = [
        f"{name}={here.get(name, value)}"
        for name, value in (one.split("=") for one in container["args"])
    ]
    pods = [[one.replace("$(NUMBER)", str(number)) for one in arguments] for number in range(2)]
    two = [
        start(*container["command"][1:4], tmp_path / "run", *pod, *shlex.split(SMALL))
        for pod in pods
    ]
    for process, log in two:
        assert process.wait(LIMIT) == 0, log.read_text()
    assert (tmp_path / "run/draws.npz").exists()
