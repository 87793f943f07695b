/**
 * Version of the protocol between agent and keeper (agent/keeper/keeper-protocol.ts). Each addition raises it, and so
 * does each restriction that applies only after a machine restarts. Agents report the version of their keeper; hosts
 * report the version that a machine gets at its next start.
 *
 * 2: an agent hands over to another agent. 3: stricter checks of names, paths and environments. 4: deadlines by the
 * host's clock. 5: the keeper starts with a minimal set of capabilities. 6: `status` contains CPU times.
 * 7: components with the role of a container, and logs with the time of each line. 8: components with the role of a
 * front, which listen on ports below 1024.
 */
export const keeperProtocol = 8;
