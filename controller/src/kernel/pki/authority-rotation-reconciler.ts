import type { Clock } from "@holdfast/common/clock.ts";
import { again, settled } from "../runtime/reconciler.ts";
import type { ControlLoop } from "../runtime/runner.ts";
import type { Watch } from "../store/store.ts";
import { planAuthorityRotation } from "./authority-rotation-plan.ts";
import type { InstallationAuthority } from "./create-authority.ts";

/** The machines, hosts and controllers that have yet to take the record's authorities. */
export interface OutdatedCertificates {
  /** Their ids; hosts as `host/<id>`, controllers as `controller/<id>`. */
  behind(): readonly string[];
  /** Calls back when `behind` may answer something else. */
  subscribe(onChange: () => void): Watch;
}

export interface AuthorityRotationDeps {
  readonly authority: InstallationAuthority;
  readonly followers: OutdatedCertificates;
  readonly clock: Clock;
}

const key = "authority";

/** Takes the rotation of the installation's authority from state to state, as fast as the machines follow. */
export function createAuthorityRotation({ authority, followers, clock }: AuthorityRotationDeps): ControlLoop {
  return {
    reconciler: {
      name: "authority-rotation",
      async reconcile() {
        const { record } = authority;
        const waitsFor = record.rotation.state === "idle" ? [] : followers.behind();
        const plan = planAuthorityRotation(record, waitsFor.length, clock.now());
        switch (plan.kind) {
          case "nothing":
            return settled;
          case "wait":
            return again(plan.untilMs, waitsFor.length > 0 ? `${waitsFor.length} machines are behind` : "the overlap");
          case "rotate":
            await authority.rotate(plan.event);
            return again(0, plan.event);
        }
      },
    },
    keys: () => [key],
    subscribe(onChange) {
      const turned = () => {
        if (authority.record.rotation.state !== "idle") onChange(key);
      };
      const watching = [authority.subscribe(turned), followers.subscribe(turned)];
      return {
        close() {
          for (const watch of watching) watch.close();
        },
      };
    },
    inputs: () => authority.generation,
  };
}
