/**
 * Loads all modules of keeper, agent and front ends without running them. With NODE_COMPILE_CACHE set, machines that
 * read that directory compile nothing when they start.
 */
await Promise.all([
  import("../keeper/containment.ts"),
  import("../keeper/keeper.ts"),
  import("@holdfast/common/clock.ts"),
  import("@holdfast/common/config.ts"),
  import("@holdfast/common/log.ts"),
  import("@holdfast/opmsg/opmsg-server.ts"),
  import("@holdfast/opmsg/session/accesses.ts"),
  import("@holdfast/tds/tds-server.ts"),
  import("./agent.ts"),
  import("./config.ts"),
  import("./engines/drivers.ts").then(({ loadDriverModules }) => loadDriverModules()),
  import("./os/keeper-client.ts"),
]);
