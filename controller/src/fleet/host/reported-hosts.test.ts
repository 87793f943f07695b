import type { Stored } from "#kernel/store/resource.ts";
import { expect, test } from "vitest";
import type { HostObject } from "./host.ts";
import { untilHostsReport } from "./reported-hosts.ts";

const signal = new AbortController().signal;
const longMs = 60_000;

const host = (facts: object | null) => ({ object: { status: { facts } }, modRevision: 1n }) as Stored<HostObject>;

function memory(all: Stored<HostObject>[]) {
  const watching = new Set<(id: string, before: HostObject | undefined) => void>();
  return {
    values: () => all.values(),
    subscribe(onChange: (id: string, before: HostObject | undefined) => void) {
      watching.add(onChange);
      return { close: () => watching.delete(onChange) };
    },
    replace(...now: Stored<HostObject>[]) {
      all.splice(0, all.length, ...now);
      for (const onChange of watching) onChange("host", undefined);
    },
    watching,
  };
}

test.each([
  ["that joins", [host(null)]],
  ["that is not there yet", []],
])("the facts of a host %s are awaited", async (_, before) => {
  const hosts = memory(before);
  let isKnown = false;
  const known = untilHostsReport(hosts, signal, longMs).then(() => {
    isKnown = true;
  });
  hosts.replace(host(null));
  await Promise.resolve();
  expect(isKnown).toBe(false);
  hosts.replace(host({}));
  await known;
  expect(hosts.watching.size).toBe(0);
});

test("known facts are not awaited, and a host that never reports delays only for a time", async () => {
  await untilHostsReport(memory([host({})]), signal, longMs);
  const hosts = memory([host({}), host(null)]);
  await untilHostsReport(hosts, signal, 1);
  expect(hosts.watching.size).toBe(0);
});
