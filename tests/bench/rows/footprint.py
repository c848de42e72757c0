"""What Berth takes when nobody does anything."""

from berth import BIN
from row import Case, Goal, row
from rows.http import targets
from rows.websocket import open_sockets

MIB = 1 << 20


@row("footprint", "resident memory, size of the programs, cold start")
def footprint(lab):
    berth = lab.berth()
    with targets(lab) as found:

        def resident():
            return berth.gateway.memory_bytes("Rss") + berth.envd.memory_bytes("Rss")

        def idle():
            berth.restart_gateway()
            return {"memory": resident(), "wall": berth.cold_start}

        def busy():
            berth.restart_gateway()
            with open_sockets(found["berth"], 1000):
                return {"memory": resident()}

        def agent():
            return {"memory": berth.instance("web").memory_bytes("/agent")}

        yield Case("idle, gateway and envd", {"berth": idle}, [Goal("memory", at_most=64 * MIB)], rounds_max=3)
        yield Case("1,000 sessions", {"berth": busy}, [Goal("memory", at_most=256 * MIB)], rounds_max=3)
        yield Case("agent of an instance", {"berth": agent}, [Goal("memory", at_most=4 * MIB)], rounds_max=3)

        def programs():
            return {"size": sum((BIN / name).stat().st_size for name in ("gateway", "envd", "envd-agent"))}

        yield Case("cold start to ready", {"berth": lambda: {"wall": idle()["wall"]}}, [Goal("wall")], rounds_max=3)
        yield Case("all three programs", {"berth": programs}, [Goal("size")], rounds_max=1, warm_up=False)
