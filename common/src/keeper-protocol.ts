/**
 * Version of what agent and keeper say to each other (agent/keeper/keeper-protocol.ts). It is raised with each addition, and with
 * each restriction that a machine only has once it was started again: agents tell their keeper's, and hosts that of the keeper that
 * a machine gets at its next start.
 *
 * 2 can have agents change places. 3 asks for nothing new: it refuses names, paths and environments that earlier ones took. 4 takes
 * deadlines by the host's clock. 5 asks for nothing new either: it is started with the few capabilities that it needs. 6 answers
 * `status` with CPU times.
 */
export const keeperProtocol = 6;
