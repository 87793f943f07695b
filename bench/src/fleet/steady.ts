import { setTimeout as sleep } from "node:timers/promises";
import { print } from "../support/figures.ts";
import type { PeerProcess } from "../support/peer-process.ts";
import type { Usage } from "../support/peer-queries.ts";
import { type EtcdEffort, effortOf } from "./etcd-effort.ts";

/** Cost of an idle period: heartbeats each 4 s and observations each 15 s from every agent. */
export interface Steady {
  /** Share of a core, by controller. */
  readonly cores: readonly number[];
  readonly rssMb: readonly number[];
  readonly etcd: EtcdEffort;
}

export async function measureSteady(
  label: string,
  controllers: readonly PeerProcess[],
  etcdUrl: string,
  seconds: number,
): Promise<Steady> {
  const usages = () => Promise.all(controllers.map((each) => each.query<Usage>({ query: "usage" })));
  const [before, etcdBefore] = [await usages(), await effortOf(etcdUrl)];
  await Promise.all(controllers.map((each) => each.query({ query: "loop" })));
  const startedAt = performance.now();
  await sleep(seconds * 1_000);
  const lags = await Promise.all(
    controllers.map((each) => each.query<{ p99Ms: number; maxMs: number }>({ query: "loop" })),
  );
  const [after, etcdAfter] = [await usages(), await effortOf(etcdUrl)];
  const elapsedMs = performance.now() - startedAt;
  const cores = after.map(({ cpuUs }, index) => (cpuUs - (before[index]?.cpuUs ?? 0)) / 1_000 / elapsedMs);
  const rssMb = after.map(({ rssBytes }) => rssBytes / 2 ** 20);
  const etcd = {
    cpuMs: etcdAfter.cpuMs - etcdBefore.cpuMs,
    proposals: etcdAfter.proposals - etcdBefore.proposals,
    puts: etcdAfter.puts - etcdBefore.puts,
  };
  const each = (values: readonly number[], unit: string) =>
    values.map((value) => `${value.toFixed(1)} ${unit}`).join(", ");
  print(
    `${label}: core of each controller`,
    each(
      cores.map((core) => core * 100),
      "%",
    ),
  );
  print(`${label}: memory of each controller`, each(rssMb, "MB"));
  print(
    `${label}: event loop late, p99 / longest`,
    lags.map((lag) => `${lag.p99Ms.toFixed(0)} / ${lag.maxMs.toFixed(0)} ms`).join(", "),
  );
  print(`${label}: etcd, core`, `${((100 * etcd.cpuMs) / elapsedMs).toFixed(1)} %`);
  print(`${label}: etcd, puts in ${seconds} s`, String(etcd.puts), "0");
  return { cores, rssMb, etcd };
}
