"""The contract of sandboxes, for every provider: a subclass of `EnvironmentContract` gives the `provider` fixture."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import pytest

from agentcompass.core.errors import SandboxError, UsageError
from agentcompass.core.model.environment import EnvironmentSpec, Leftover
from agentcompass.core.model.network import NetworkMode, NetworkPolicy
from agentcompass.ports.environment import EnvironmentProvider

from .environment_commands import CommandContract, KillContract
from .environment_files import FileContract
from .environment_tools import alive, beat, opened, run, until


async def listed(provider: EnvironmentProvider, ids: Collection[str]) -> list[Leftover]:
    """Return the leftovers with one of *ids*: others may be at work where *provider* looks."""
    return [leftover for leftover in await provider.leftovers() if leftover.id in ids]


class LifeContract:
    """How sandboxes are opened, refused and closed. A subclass may say, by `leftovers`, what its provider leaves."""

    def leftovers(self, provider: EnvironmentProvider) -> list[str]:
        """Name the processes and other things that closed sandboxes of *provider* have left."""
        return []

    def test_foreign_network_modes_are_refused(self, provider: EnvironmentProvider) -> None:
        """A mode that the provider does not have is refused by its name, at opening and later."""

        async def main() -> None:
            async with opened(provider) as env:
                for mode in set(NetworkMode) - provider.capabilities.network_modes:
                    with pytest.raises(UsageError, match=mode.value):
                        await env.set_network(NetworkPolicy(mode))
                    with pytest.raises(UsageError, match=mode.value):
                        await provider.open(EnvironmentSpec(network=NetworkPolicy(mode)))
                if NetworkMode.PUBLIC in provider.capabilities.network_modes:
                    await env.set_network(NetworkPolicy(NetworkMode.PUBLIC))

        run(main())
        assert [] == self.leftovers(provider)

    def test_foreign_users_and_images_are_refused(self, provider: EnvironmentProvider) -> None:
        """A user or an image that the provider cannot give is refused, never ignored."""

        async def main() -> None:
            async with opened(provider) as env:
                if not provider.capabilities.users:
                    with pytest.raises(UsageError, match="nobody"):
                        await env.exec("true", user="nobody")
            if not provider.capabilities.images:
                with pytest.raises(UsageError, match="debian:12"):
                    await provider.open(EnvironmentSpec(image="debian:12"))

        run(main())
        assert [] == self.leftovers(provider)

    def test_check_is_one_line(self, provider: EnvironmentProvider) -> None:
        """The check says what answers, and leaves nothing."""
        line = run(provider.check())

        assert line
        assert "\n" not in line
        assert [] == self.leftovers(provider)

    def test_nothing_is_left(self, provider: EnvironmentProvider) -> None:
        """Closing kills what runs, however it hides, and removes every trace; an unused sandbox likewise."""
        hearts: list[bool] = []

        async def main() -> None:
            async with opened(provider), opened(provider) as env:
                await env.exec("mkdir -p d/e; touch d/e/f; chmod 0 d/e d; (setsid sleep 60 &); sleep 60", timeout=0.1)
                await env.exec("(setsid sh -c 'sleep 60 & sleep 60' &); sleep 60 & echo")
                hearts.append(bool(self.leftovers(provider)))

        run(main())
        assert [] == self.leftovers(provider)

    def test_closing_again_does_nothing(self, provider: EnvironmentProvider) -> None:
        """A sandbox can be closed twice, at once or later, after which it refuses to work."""

        async def main() -> None:
            env = await provider.open(EnvironmentSpec())
            await env.exec("sleep 60 &")
            await asyncio.gather(env.close(), env.close())
            await env.close()
            with pytest.raises(SandboxError):
                await env.exec("true")
            with pytest.raises(SandboxError):
                await env.write_file("x", b"")

        run(main())
        assert [] == self.leftovers(provider)

    def test_closing_ends_a_running_command(self, provider: EnvironmentProvider) -> None:
        """A command that still runs is killed, and its caller is not left waiting."""

        async def main() -> None:
            env = await provider.open(EnvironmentSpec())
            running = asyncio.ensure_future(env.exec(beat("heart") + " & sleep 60"))
            await until(lambda: alive(env, "heart"))
            await env.close()
            await asyncio.wait({running}, timeout=2)

            assert running.done()
            assert isinstance(running.exception(), SandboxError) or running.result().exit_code != 0

        run(main())
        assert [] == self.leftovers(provider)

    def test_cancelled_closing_still_closes(self, provider: EnvironmentProvider) -> None:
        """A cancellation during the close does not leave half of it."""

        async def main() -> None:
            env = await provider.open(EnvironmentSpec())
            await env.exec("sleep 60 &")
            closing = asyncio.ensure_future(env.close())
            await asyncio.sleep(0)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            await env.close()

        run(main())
        assert [] == self.leftovers(provider)

    def test_cancelled_opening_leaves_nothing(self, provider: EnvironmentProvider) -> None:
        """Whenever an opening is cancelled, it is either whole or gone."""

        async def main() -> None:
            for steps in range(6):
                opening = asyncio.ensure_future(provider.open(EnvironmentSpec()))
                for _ in range(steps):
                    await asyncio.sleep(0)
                opening.cancel()
                try:
                    env = await opening
                except asyncio.CancelledError:
                    continue
                await env.close()

        run(main())
        assert [] == self.leftovers(provider)


class RecordContract:
    """How sandboxes are recorded before they exist, found when nobody has closed them, and removed."""

    def leftovers(self, provider: EnvironmentProvider) -> list[str]:
        """Name the processes and other things that closed sandboxes of *provider* have left."""
        return []

    def test_nothing_is_made_before_it_is_recorded(self, provider: EnvironmentProvider) -> None:
        """While the record is written there is nothing yet; and if it cannot be written, there is nothing ever."""
        seen: list[list[str]] = []

        def refuse(_: Mapping[str, str]) -> None:
            seen.append(self.leftovers(provider))
            raise OSError("the disk is full")

        async def main() -> None:
            with pytest.raises((OSError, SandboxError), match="the disk is full"):
                env = await provider.open(EnvironmentSpec(), refuse)
                try:
                    await env.exec("true")
                finally:
                    await env.close()

        run(main())
        assert [[]] == seen
        assert [] == self.leftovers(provider)

    def test_open_sandboxes_are_listed_until_they_are_closed(self, provider: EnvironmentProvider) -> None:
        """By the id that was recorded, with the labels of the spec and the owner, who is alive: this process."""
        recorded: list[str] = []

        async def main() -> None:
            labels = {"run": "r-1", "task": "t 1/ä", "attempt": "1"}
            env = await provider.open(EnvironmentSpec(labels=labels), lambda facts: recorded.append(facts["id"]))
            await env.exec("true")
            found = await listed(provider, recorded)

            assert found
            assert {(False, False)} == {(one.abandoned, one.kept) for one in found}
            assert any(labels.items() <= one.labels.items() for one in found)
            assert all(one.what and one.provider and one.owner for one in found)
            await env.close()
            assert [] == await listed(provider, recorded)

        run(main())
        assert len(recorded) == len(set(recorded)) >= 1
        assert [] == self.leftovers(provider)

    def test_the_label_kept_is_seen(self, provider: EnvironmentProvider) -> None:
        """A sandbox that is to stay is listed as such; closing it removes it nevertheless."""
        recorded: list[str] = []

        async def main() -> None:
            spec = EnvironmentSpec(labels={"kept": "true"})
            env = await provider.open(spec, lambda facts: recorded.append(facts["id"]))
            await env.exec("true")
            assert any(one.kept for one in await listed(provider, recorded))
            await env.close()
            assert [] == await listed(provider, recorded)

        run(main())

    @pytest.mark.parametrize("known_by", ["record", "id"])
    def test_release_removes_what_is_there(self, provider: EnvironmentProvider, known_by: str) -> None:
        """With its processes, by what was recorded or by its id alone; what is gone already is no error."""
        recorded: list[Mapping[str, str]] = []

        async def main() -> None:
            env = await provider.open(EnvironmentSpec(), lambda facts: recorded.append(dict(facts)))
            await env.exec("sleep 60 & setsid sleep 60 & touch file")
            for facts in recorded * 2:
                await provider.release(facts if known_by == "record" else {"id": facts["id"]})
            assert [] == await listed(provider, [facts["id"] for facts in recorded])
            await env.close()

        run(main())
        assert recorded
        assert [] == self.leftovers(provider)


class EnvironmentContract(CommandContract, KillContract, FileContract, RecordContract, LifeContract):
    """What every sandbox does."""
