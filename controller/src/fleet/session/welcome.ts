import type { Session } from "./session.ts";
import type { SessionLimits } from "./session-limits.ts";

export interface WelcomeDeps {
  readonly controllerId: string;
  readonly limits: Pick<SessionLimits, "heartbeatIntervalMs" | "sampleIntervalMs">;
  readonly controllers: () => readonly string[];
  readonly authorityGeneration: () => number;
  readonly hasLease: () => boolean;
}

/** Tells an agent which controllers and authorities there are, how often to report, and whether this controller may act. */
export function sendWelcome(session: Session, deps: WelcomeDeps): void {
  const { controllerId, controllers } = deps;
  const { heartbeatIntervalMs, sampleIntervalMs } = deps.limits;
  const authorityGeneration = BigInt(deps.authorityGeneration());
  const value = {
    controllerId,
    heartbeatIntervalMs,
    sampleIntervalMs,
    controllers: [...controllers()],
    authorityGeneration,
    withoutLease: !deps.hasLease(),
  };
  session.send({ case: "welcome", value });
}
