import { createLane, type Lane } from "@holdfast/common/lane.ts";

/**
 * Of the slots that only the platform can take, statistics and lists of sessions use one at a time, beside the one of the
 * figures: probes, users and databases have the rest. One engine runs in an agent.
 */
export const insightLane: Lane = createLane(1);
