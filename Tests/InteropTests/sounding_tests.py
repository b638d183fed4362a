"""Channel Sounding of two `ble`: capabilities, configuration, security and procedures."""

from harness import World, expect, test

# rootcanal 1.10.0 does not know Channel Sounding.
PRESETS = ("OURS", "NEWER")


@test("ble sounding with itself: the controllers agree on a configuration and perform procedures", PRESETS)
async def both(world: World):
    async with world.start("sounding", "listen") as listening:
        ready = await listening.event("ready")
        arguments = ("sounding", "measure", ready["address"], "--procedures", "3", "--interval", "5")
        async with world.start(*arguments) as measuring:
            expect((await measuring.event("ownCapabilities"))["roles"], ["initiator", "reflector"], "own roles")
            expect((await measuring.event("peerCapabilities"))["roles"], ["initiator", "reflector"], "the peer's roles")
            is_ours = world.preset.name == "OURS"
            # rootcanal tells the reflector no number of procedures, and reports it the first one only.
            for process, role, count, reported in (
                (measuring, "initiator", 3, 3),
                (listening, "reflector", 3 if is_ours else 0, 3 if is_ours else 1),
            ):
                started = await process.event("started")
                expect((started["role"], started["mode"], started["procedures"]), (role, 2, count), "the procedures")
                for number in range(reported):
                    event = await process.event("subevent")
                    if is_ours:
                        # There are no tones in its air, so that each procedure is aborted.
                        found = (event["procedure"], event["outcome"], event["steps"])
                        expect(found, (number, "aborted", []), "the procedure")
                    else:
                        # rootcanal numbers all procedures 0, and invents the measurements of steps.
                        expect((event["outcome"], event["truncated"]), ("complete", False), "the procedure")
                        expect({step["mode"] for step in event["steps"]}, {2}, "the modes of its steps")
                if count:
                    (await process.ended()).succeeded()
