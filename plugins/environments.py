"""Sandbox providers in the box, by name; each is imported when a run opens it."""

from __future__ import annotations

from agentcompass.core.model.component import Component, parameters
from agentcompass.ports.hookspecs import hookimpl

_HOME = "agentcompass.adapters.sandboxes"
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}, "default": []}
_LIMIT = {"type": ["integer", "null"], "minimum": 1, "default": None}


@hookimpl
def register_environments() -> tuple[Component, ...]:
    """Name the providers."""
    return (
        _host_process(),
        _docker(),
        _bubblewrap(),
    )


def _docker() -> Component:
    return Component(
        "docker",
        "A container for each attempt, on the engine that the docker command uses (Podman's too).",
        f"{_HOME}.docker_engine:DockerProvider",
        parameters(
            image={
                "type": ["string", "null"],
                "default": None,
                "description": "Image for tasks that neither name one nor can be built; null for none.",
            },
            pull={
                "enum": ["missing", "never", "always"],
                "default": "missing",
                "description": "When images are fetched from a registry.",
            },
            platform={
                "type": ["string", "null"],
                "default": None,
                "description": "Platform of images, such as linux/amd64; null for the engine's own.",
            },
            user={
                "type": ["string", "null"],
                "default": None,
                "description": "User of commands that name none; null for the image's.",
            },
            build_args={
                "type": "object",
                "additionalProperties": {"type": "string"},
                "default": {},
                "description": "Arguments of every build.",
            },
            mounts={**_NAMES, "description": "Folders or volumes to mount, as SOURCE:TARGET[:ro]."},
            ports={**_NAMES, "description": "Ports to publish, as [[ADDRESS:]HOST:]CONTAINER."},
            devices={**_NAMES, "description": "Devices of the engine's machine, as SOURCE[:TARGET[:rwm]]."},
            cap_add={**_NAMES, "description": "Kernel capabilities to add, such as SYS_PTRACE."},
            networks={**_NAMES, "description": "Networks to join besides the default one, where it is public."},
        ),
        extra="docker",
        modules=("docker",),
    )


def _host_process() -> Component:
    return Component(
        "host_process",
        "Processes on this machine, each attempt in a private folder; no isolation of files or network.",
        f"{_HOME}.local_process:HostProcessProvider",
        parameters(
            root={
                "type": ["string", "null"],
                "default": None,
                "description": "Folder for the private folders; null for the system's temporary one.",
            },
            inherit={
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "description": "Names of variables of this machine that commands may see.",
            },
            memory_mb={**_LIMIT, "description": "Address space of one process, in MiB; null for no limit."},
            file_mb={**_LIMIT, "description": "Size of one file, in MiB; null for no limit."},
            open_files={
                **_LIMIT,
                "minimum": 8,
                "description": "Open files of one process; null for the machine's limit.",
            },
        ),
    )


def _bubblewrap() -> Component:
    return Component(
        "bubblewrap",
        "A private root on this machine's system, an unprivileged user, a network of its own; needs bwrap or unshare.",
        f"{_HOME}.bubblewrap:BubblewrapProvider",
        parameters(
            root={
                "type": ["string", "null"],
                "default": None,
                "description": "Folder for the private folders; null for the system's temporary one.",
            },
            bind={
                "type": "array",
                "items": {"type": "string", "pattern": "^/"},
                "default": [],
                "description": "Files and folders of this machine that are shown, read-only, at their own paths.",
            },
            build_args={
                "type": "object",
                "additionalProperties": {"type": "string"},
                "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
                "default": {},
                "description": "Values of the ARGs of a Dockerfile.",
            },
        ),
    )
