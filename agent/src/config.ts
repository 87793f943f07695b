import { list, text } from "@holdfast/common/config.ts";

/** Settings of the agent. The keeper sets them; users do not. */
export const settings = {
  machineId: text("HOLDFAST_MACHINE_ID", "Id of this machine"),
  machineStart: text("HOLDFAST_MACHINE_START", "Identifier of this start of the machine", ""),
  stateDir: text("HOLDFAST_STATE_DIR", "Directory for enrollment, journal, keys and logs", "/var/lib/holdfast"),
  runDir: text("HOLDFAST_RUN_DIR", "Directory for sockets, emptied at each start of the machine", "/run/holdfast"),
  dataDir: text("HOLDFAST_DATA_DIR", "Root of the data disk", "/data"),
  keeperSocket: text("HOLDFAST_KEEPER_SOCKET", "Unix socket of the keeper", "/run/holdfast/keeper.sock"),
  cgroupDir: text(
    "HOLDFAST_CGROUP_DIR",
    "Directory of the machine's own control group; empty if it has none",
    "/sys/fs/cgroup",
  ),
  networkInterface: text(
    "HOLDFAST_NETWORK_INTERFACE",
    "Network interface that only this machine uses; empty if it shares the host's network",
    "",
  ),
  softwareRoot: text("HOLDFAST_SOFTWARE_ROOT", "Root below which engines are installed", "/"),
  engine: text("HOLDFAST_ENGINE", "Engine of this machine, loaded before its settings arrive; empty for none", ""),
  controllers: list("HOLDFAST_CONTROLLERS", "Controllers to dial in addition to the enrollment's, host:port"),
  run: text("HOLDFAST_AGENT_RUN", "Id that the keeper gave this run of the agent", ""),
  part: text(
    "HOLDFAST_AGENT_PART",
    "Part of this agent: current, or next for an agent that takes over from another one",
    "current",
  ),
  controller: text("HOLDFAST_AGENT_CONTROLLER", "Controller of the agent that it takes over from", ""),
  logLevel: text("HOLDFAST_LOG_LEVEL", "debug, info, warn or error", "info"),
};
