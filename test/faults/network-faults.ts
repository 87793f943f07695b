import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { queryOnce } from "@holdfast/testing/api/clients.ts";
import { firstProcessOf } from "@holdfast/testing/machines/incus-machines.ts";
import type { CutDirection } from "@holdfast/testing/network/network-cuts.ts";
import type { LogsJson, OperationJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import type { SlowNetwork } from "@holdfast/testing/network/slow-network.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { endOf } from "./engine-changes.ts";
import type { FaultFixture, WrittenService } from "./fault-fixture.ts";
import { isUnreachable } from "./machine-faults.ts";

const startedAt = "SELECT pg_postmaster_start_time()::text AS at";

/**
 * Cuts the network until the cut is reported, and for at least `lastMs`. A request during the cut ends with success or
 * an error, and is carried out once or not at all; nothing in the machine is restarted.
 */
export async function cutNetwork(
  fixture: FaultFixture,
  service: WrittenService,
  direction: CutDirection,
  lastMs: number,
): Promise<void> {
  const { statuses: sights, figures, cuts, platform, incus } = fixture;
  const query = (sql: string) => queryOnce<{ at: string }>(platform, service.connection, service, sql);
  const path = `/managed-services/${service.id}/database-users`;
  const keeper = await firstProcessOf(incus, service.machineId);
  const before = await query(startedAt);
  const at = Date.now();
  await cuts.cut(service.address, direction);
  const request = platform.rest.post<ProblemJson & { operation: { id: string } }>(path, {
    username: `cut_${direction}`,
    role: "readonly",
  });
  // Handles the rejection when the report is wrong.
  request.catch(() => undefined);
  let reportedMs: number;
  try {
    reportedMs = await sights.until(service.id, "the machine is reported unreachable", at, isUnreachable);
    const { status, json } = await request;
    // A request that could not complete in time continues when the machine reconnects.
    expect([201, 202, 503]).toContain(status);
    if (status === 503) expect(json.code).toBe("machine_unreachable");
    // Time: the length of the cut.
    await sleep(Math.max(0, at + lastMs - Date.now()));
  } finally {
    await cuts.heal(service.address);
  }
  const backMs = await fixture.recoveredMs(service, Date.now());
  expect(await firstProcessOf(incus, service.machineId)).toBe(keeper);
  expect(await query(startedAt)).toEqual(before);
  const { status, json } = await request;
  const created =
    status === 201 || (status === 202 && (await endOf(platform, json.operation.id)).status === "completed");
  await waitUntil("the API and the engine agree on users", async () => {
    const { users } = expectStatus(await platform.rest.get<{ users: { username: string }[] }>(path), 200).json;
    const listed = users.some(({ username }) => username === `cut_${direction}`);
    const rows = await query(`SELECT rolname::text AS at FROM pg_roles WHERE rolname = 'cut_${direction}'`);
    return listed === created && rows.length === (created ? 1 : 0);
  });
  figures.note(`network cut, ${direction === "both" ? "both ways" : `${direction} the machine`}`, {
    reportedMs,
    backMs,
  });
}

/** 300 ms round trip, and one of twenty packets lost each way. */
export async function slowDown(fixture: FaultFixture, service: WrittenService, network: SlowNetwork): Promise<void> {
  const { statuses: sights, figures, platform, services } = fixture;
  const path = (rest: string) => `/managed-services/${service.id}${rest}`;
  const at = Date.now();
  const repair = await network.slow(service.address, { delayMs: 150, lossPct: 5 });
  try {
    const user = { username: "slow", role: "readwrite" };
    const response = await platform.rest.post<{ readonly operation: OperationJson | null }>(
      path("/database-users"),
      user,
    );
    // Lost packets are retransmitted after doubling pauses: several losses in a row take longer than a response may.
    if (response.status === 202)
      expect(await endOf(platform, response.json.operation?.id ?? "")).toMatchObject({ status: "completed" });
    else expectStatus(response, 201);
    const { lines } = expectStatus(await platform.rest.get<LogsJson>(path("/logs")), 200).json;
    expect(lines.length).toBeGreaterThan(0);
    const until = Date.now() + 15_000;
    while (Date.now() < until) {
      expect((await services.get(service.id)).status).toBe("Running");
      // Time: the rate of the checks while the network is slow.
      await sleep(1_000);
    }
    const samples = sights.since(service.id, at);
    expect(
      samples.every(({ node, health }) => node === "Running" && health === "healthy"),
      JSON.stringify(samples),
    ).toBe(true);
    await services.verb(service.id, "restart");
    await fixture.recoveredMs(service, Date.now());
  } finally {
    await repair();
  }
  figures.note("300 ms latency, 5% loss", { backMs: await fixture.recoveredMs(service, Date.now()) });
}
