import type { Clock } from "@holdfast/common/clock.ts";
import { again, settled } from "../runtime/reconciler.ts";
import type { ControlLoop } from "../runtime/runner.ts";
import type { Watch } from "../store/store.ts";
import type { InstallationAuthority } from "./create-authority.ts";
import type { AuthorityRecord } from "./authority-record.ts";

/** The machines, hosts and controllers whose certificates predate the record of authorities. */
export interface OutdatedCertificates {
  /** Ids of the holders: machine ids, `host/<id>` and `controller/<id>`. */
  outdated(): readonly string[];
  /** Calls back when the list may have changed. */
  subscribe(onChange: () => void): Watch;
}

export interface AuthorityRotationDeps {
  readonly authority: InstallationAuthority;
  readonly followers: OutdatedCertificates;
  readonly clock: Clock;
}

const key = "authority";

/** Advances the rotation of the installation's authority once every holder of certificates has the current record. */
export function createAuthorityRotation({ authority, followers, clock }: AuthorityRotationDeps): ControlLoop {
  return {
    reconciler: {
      name: "authority-rotation",
      async reconcile() {
        const { record } = authority;
        const outdated = record.rotation.state === "idle" ? [] : followers.outdated();
        const plan = planAuthorityRotation(record, outdated.length, clock.now());
        switch (plan.kind) {
          case "nothing":
            return settled;
          case "wait":
            return again(
              plan.untilMs,
              outdated.length > 0 ? `${outdated.length} holders have outdated certificates` : "the overlap",
            );
          case "rotate":
            await authority.rotate(plan.event);
            return again(0, plan.event);
        }
      },
    },
    keys: () => [key],
    subscribe(onChange) {
      const onRotationChange = () => {
        if (authority.record.rotation.state !== "idle") onChange(key);
      };
      const watches = [authority.subscribe(onRotationChange), followers.subscribe(onRotationChange)];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
    inputs: () => authority.generation,
  };
}

/** The next action of a rotation. */
type RotationPlan =
  | { readonly kind: "nothing" }
  | { readonly kind: "rotate"; readonly event: "trusted" | "renewed" }
  | { readonly kind: "wait"; readonly untilMs: number };

/** `outdatedCount`: number of machines, hosts and controllers that lack the record's authorities. */
function planAuthorityRotation({ rotation }: AuthorityRecord, outdatedCount: number, now: number): RotationPlan {
  if (rotation.state === "idle") return { kind: "nothing" };
  if (outdatedCount > 0) return { kind: "wait", untilMs: recheckIntervalMs };
  if (rotation.state === "renewing") return { kind: "rotate", event: "renewed" };
  const remainingMs = rotation.signsFrom - now;
  return remainingMs > 0
    ? { kind: "wait", untilMs: Math.min(remainingMs, maxWaitMs) }
    : { kind: "rotate", event: "trusted" };
}

const recheckIntervalMs = 2_000;
const maxWaitMs = 3_600_000;
