import { AgentRolloutService } from "@holdfast/proto/holdfast/admin/v1/agent_rollout_pb.ts";
import { casesOf, type Contract, ofPlatform, platformScoped } from "@holdfast/testing/contract/contract.ts";

export default {
  authorization: [
    casesOf(AgentRolloutService, {
      getAgentRollout: ofPlatform,
      listAgents: ofPlatform,
      pauseAgentRollout: ofPlatform,
      resumeAgentRollout: ofPlatform,
      retryAgentUpgrade: platformScoped(({ machineId }) => ({ machine_id: machineId })),
      offerAgentRelease: ofPlatform,
    }),
  ],
  listBounds: {
    "holdfast.admin.v1.AgentRollout.versions": "100",
  },
  kindBounds: {
    "agent-rollout": "one",
  },
} satisfies Contract;
