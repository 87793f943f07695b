import type { PolicyRule } from "@holdfast/compute/compute-provider.ts";
import { expect, test } from "vitest";
import type { PolicySource } from "./policy-source.ts";
import { createNetworkPolicyWork } from "./network-policy-reconciler.ts";

const rule = (hostId: string): PolicyRule => ({
  owner: { kind: "managed-service", id: hostId },
  to: "10.1.0.1",
  port: 5432,
  from: ["0.0.0.0/0"],
});

test("a change of one service applies the rules of its hosts only", async () => {
  const applied = new Map<string, number>();
  const edgeOf = (hostId: string) => ({
    apply: async (rules: readonly PolicyRule[]) => {
      expect(rules).toEqual([rule(hostId)]);
      applied.set(hostId, (applied.get(hostId) ?? 0) + 1);
    },
  });
  const edges = new Map(Array.from({ length: 100 }, (_, n) => [`host-${n}`, edgeOf(`host-${n}`)] as const));
  let notify: Parameters<PolicySource["subscribe"]>[0] = () => undefined;
  const owner: PolicySource = {
    name: "owner",
    rulesOn: (hostId) => [rule(hostId)],
    subscribe(onChange) {
      notify = onChange;
      return { close() {} };
    },
  };
  const { reconciler, subscribe } = createNetworkPolicyWork({ edges: () => edges, sources: [owner] });
  const queued: string[] = [];
  const watch = subscribe?.((hostId) => queued.push(hostId));
  notify(new Set(["host-7", "host-41"]));
  const { signal } = new AbortController();
  for (const hostId of queued) await reconciler.reconcile(hostId, signal);
  expect([...applied]).toEqual([
    ["host-7", 1],
    ["host-41", 1],
  ]);
  queued.length = 0;
  notify();
  expect(queued).toHaveLength(100);
  watch?.close();
});
