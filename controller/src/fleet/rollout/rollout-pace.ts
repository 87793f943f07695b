import type { FleetSettings } from "../fleet-settings.ts";
import type { RolloutPace } from "./agent-rollout-plan.ts";

type Settings = Pick<
  FleetSettings,
  "agentUpgrade" | "agentUpgradeShares" | "agentUpgradeSoakS" | "agentUpgradeFailurePct" | "agentUpgradeAtOnce"
>;

/** As the settings say; undefined where agents stay what they are. Throws for settings that say nothing. */
export function rolloutPaceOf(settings: Settings): RolloutPace | undefined {
  const { agentUpgrade, agentUpgradeShares, agentUpgradeSoakS, agentUpgradeFailurePct, agentUpgradeAtOnce } = settings;
  if (agentUpgrade !== "on" && agentUpgrade !== "off") {
    throw new Error(`HOLDFAST_AGENT_UPGRADE is on or off, not ${agentUpgrade}`);
  }
  const shares = agentUpgradeShares.map(Number);
  const rising = shares.every((share, at) => share > (shares[at - 1] ?? 0) && share <= 100);
  if (!rising || shares.at(-1) !== 100) {
    throw new Error("HOLDFAST_AGENT_UPGRADE_SHARES are percents that rise to 100, such as 5,25,100");
  }
  if (agentUpgrade === "off") return undefined;
  return {
    shares,
    soakMs: agentUpgradeSoakS * 1_000,
    failurePct: agentUpgradeFailurePct,
    atOnce: Math.max(1, agentUpgradeAtOnce),
  };
}
