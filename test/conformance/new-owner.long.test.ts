import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { metricCatalog } from "@holdfast/common/metric-catalog.ts";
import { type Controller, startController } from "@holdfast/controller/controller.ts";
import type { MachineObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import { ReadLogsSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Board, boardKind, boardPort } from "@holdfast/testing/board/board.ts";
import { type BoardSystem, systemsWithBoards } from "@holdfast/testing/board/board-system.ts";
import { boardInstance, isOwnedBy } from "@holdfast/testing/board/board-work.ts";
import { type ControllerFixture, newControllerFixture } from "@holdfast/testing/controller/local-controller.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { newSecondHost, type SecondHost } from "@holdfast/testing/platform/second-host.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

// A board owns a machine and is not a service (testing/src/board): its files and one line in the
// list of systems add it. The controller, the hosts, and the keepers and agents of its machines are the real ones.

interface HostJson {
  readonly state: string;
  readonly drain?: {
    readonly state: string;
    readonly waitsFor?: readonly { readonly serviceId: string; readonly owner: object; readonly reason: string }[];
  };
}

const stepMs = 120_000;
const skipped = await requireRecipes(import.meta.filename, "trixie");

let fixture: ControllerFixture;
let settings: Record<string, string>;
let controller: Controller;
let inside: BoardSystem;
const hosts = new Map<string, SecondHost>();
let board: Board;

beforeAll(async () => {
  fixture = await newControllerFixture("inst-boards");
  settings = {
    ...(await fixture.settingsIn(fixture.directory)),
    HOLDFAST_WAITING_MACHINES_MAX: "0",
    HOLDFAST_AGENT_UPGRADE: "off",
    HOLDFAST_SAMPLE_INTERVAL_MS: "1000",
  };
  controller = await startController(
    systemsWithBoards((opened) => {
      inside = opened;
    }),
    settings,
  );
  await Promise.all(["first", "second"].map(addHost));
}, stepMs);
afterAll(async () => {
  await controller?.stop();
  await Promise.all([...hosts.values()].map((host) => host.remove()));
  await fixture?.close();
});

async function addHost(name: string): Promise<void> {
  const host = newSecondHost();
  hosts.set(name, host);
  const [port] = await freePorts(1);
  const joinFile = join(fixture.directory, `${name}.json`);
  const at = ["--zone", "local", "--address", `127.0.0.1:${port}`, "--join-file", joinFile];
  await fixture.admin(settings, "hosts", "add", name, ...at);
  await host.start(await readFile(joinFile, "utf8"), [], { HOLDFAST_SPARES: "0" });
  await hostIs(name, ({ state }) => state === "ready");
}

const hostOf = (name: string) => fixture.admin<HostJson>(settings, "hosts", "get", name);

const hostIs = (name: string, test: (found: HostJson) => boolean) =>
  waitUntil(`host ${name} is as expected`, async () => test(await hostOf(name)), {
    withinMs: stepMs,
    everyMs: 250,
    describe: async () => JSON.stringify(await hostOf(name)),
  });

const machines = (): MachineObject[] =>
  [...inside.fleet.machines.values()].map(({ object }) => object).filter((each) => isOwnedBy(each, board.metadata.id));

/** Waits until the board has one machine, whose engine runs on this host, or on any. */
async function settledMachine(host?: string): Promise<MachineObject> {
  const isSettled = () => {
    const [machine, ...others] = machines();
    return (
      machine?.status.state === "running" &&
      others.length === 0 &&
      (host === undefined || machine.spec.hostId === host) &&
      inside.fleet.fleet.observation(machine.metadata.id)?.instance?.state === "running"
    );
  };
  const stateOf = ({ metadata: { id }, spec, status }: MachineObject) => {
    const { state, reason } = inside.fleet.fleet.observation(id)?.instance ?? {};
    return `${spec.hostId} ${status.state} ${status.reason}: ${state} ${reason}`;
  };
  const describe = () => machines().map(stateOf).join("; ");
  await waitUntil("the board has one running machine", isSettled, { withinMs: stepMs, describe });
  return machines()[0] as MachineObject;
}

/** Changes the stored board. */
async function store(change: (unit: ReturnType<BoardSystem["begin"]>) => void): Promise<void> {
  const unit = inside.begin();
  change(unit);
  await inside.boards.untilRevision(await unit.commit(), 5_000);
}

const other = (host: string | null) => (host === "first" ? "second" : "first");

test.skipIf(skipped)(
  "an owner that is no service lives from its creation to its deletion",
  { timeout: 600_000 },
  async () => {
    // Placed: on a host of its zone with its software, with an agent.
    const metadata = newMetadata(inside.newId(), inside.clock.now(), { name: "chess" });
    board = { metadata, spec: { zone: "local" }, status: {} };
    const { id } = metadata;
    await store((unit) => unit.create(boardKind, board));
    const first = await settledMachine();
    const drained = first.spec.hostId ?? "";
    const [row] = (await fixture.admin<Record<string, unknown>[]>(settings, "machines")) ?? [];
    expect(row).toMatchObject({ owner: "board chess", ownerKind: "board", ownerId: id, state: "running" });

    // Networked: a name, and rules for its address alone.
    const owner = { kind: "board", id };
    const { address } = first.status;
    await waitUntil("the board's name resolves to the machine", () => inside.fleet.zone.of(owner).length > 0);
    expect(inside.fleet.zone.of(owner).map(({ spec }) => spec.addresses)).toEqual([[address]]);
    const rule = { owner, to: address, port: boardPort, from: ["127.0.0.0/8"] };
    expect([drained, other(drained)].map((host) => inside.policy.rulesOn(host))).toEqual([[rule], []]);

    // Measured: by the machine's samples, and by a metric of the process.
    const metricNumbers = metricCatalog.map(({ number }) => number);
    const samplesOf = (machineId: string) => inside.samples.recent([{ machineId, afterMs: 0 }], metricNumbers);
    await waitUntil(
      "the history has samples of its machine",
      async () => {
        const [sample] = await samplesOf(first.metadata.id);
        return sample !== undefined && sample.values.size > 0;
      },
      { withinMs: stepMs, everyMs: 500 },
    );
    expect(await controller.metrics.text()).toMatch(/^holdfast_boards 1$/m);

    // In logs: the log of its engine, by the id of the board.
    const input = { case: "readLogs", value: create(ReadLogsSchema, { limit: 10 }) } as const;
    const call = { ownerId: id, ...boardInstance, lane: "query", input, deadlineMs: 20_000 } as const;
    const { output } = await inside.fleet.fleet.run(first.metadata.id, call, 20_000);
    if (output.case !== "readLogs") throw new Error(`the agent answered ${output.case}`);
    expect(output.value.lines.length).toBeGreaterThan(0);

    // Drained: the host names the owner with its own reason, and the owner moves, without consent.
    await expect(fixture.admin(settings, "hosts", "remove", drained, "--yes")).rejects.toThrow(
      `Wipe the boards ${id} first.`,
    );
    const { drain } = await fixture.admin<HostJson>(settings, "hosts", "drain", drained);
    expect(drain?.state).toBe("draining");
    let waits: object | undefined;
    await waitUntil(
      "the drain names the board or is over",
      async () => {
        const found = (await hostOf(drained)).drain;
        waits ??= found?.waitsFor?.[0];
        return waits !== undefined || found?.state === "drained";
      },
      { withinMs: stepMs, everyMs: 50 },
    );
    expect(waits).toMatchObject({
      owner: { kind: "board", id, name: "chess" },
      reason: expect.stringMatching(/^Its /),
    });
    const second = await settledMachine(other(drained));
    expect(second.metadata.id).not.toBe(first.metadata.id);
    await hostIs(drained, (found) => found.drain?.state === "drained");
    expect(hosts.get(drained)?.processes().machines).toEqual([]);
    await fixture.admin(settings, "hosts", "uncordon", drained);

    // Its host is lost: nothing of value was on it, so no consent is needed, and the owner creates another machine.
    const lost = other(drained);
    await hosts.get(lost)?.stop();
    await hostIs(lost, ({ state }) => state === "unreachable");
    await waitUntil("its machine is unreachable", () => machines()[0]?.status.state === "unreachable", {
      withinMs: stepMs,
    });
    const foreign = ["--destroyed", "--lost-owner", "board/nobody", "--yes"];
    await expect(fixture.admin(settings, "hosts", "remove", lost, ...foreign)).rejects.toThrow(
      "board/nobody is not on host",
    );
    await fixture.admin(settings, "hosts", "remove", lost, "--destroyed", "--yes");
    const third = await settledMachine(drained);
    expect(third.metadata.id).not.toBe(second.metadata.id);
    await waitUntil(
      "the board's name resolves to the new machine",
      () => inside.fleet.zone.of(owner)[0]?.spec.addresses[0] === third.status.address,
    );

    // Deleted: with its machine, on its host too, and with its name.
    const stored = inside.boards.get(id);
    if (stored === undefined) throw new Error("the board is absent");
    const deletionRequestedAt = inside.clock.now();
    const deleted = { ...stored.object, metadata: { ...stored.object.metadata, deletionRequestedAt } };
    await store((unit) => unit.update(boardKind, stored, deleted));
    await waitUntil("the board is deleted", () => inside.boards.get(id) === undefined, { withinMs: stepMs });
    expect(machines()).toEqual([]);
    expect(hosts.get(drained)?.processes().machines).toEqual([]);
    expect(inside.fleet.zone.of(owner)).toEqual([]);
    await fixture.admin(settings, "hosts", "remove", drained, "--yes");
  },
);
