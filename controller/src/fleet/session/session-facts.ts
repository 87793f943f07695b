/** Facts about an agent's stream, which every controller has. */
export interface SessionFacts {
  readonly controllerId: string;
  /** Milliseconds since 1970. */
  readonly connectedAt: number;
  /** Release of the agent. */
  readonly agentVersion: string;
  /** Digest of the agent's code; empty if it runs from a checkout. */
  readonly agentDigest: string;
  /** Version of the machine's keeper protocol; 0 if the agent reported none. */
  readonly keeperProtocol: number;
  /** 1: the agent stops its engine when its primary lease expires. Absent or 0: that is not certain. */
  readonly primaryLeaseVersion?: number;
  /** Kinds of workloads that the agent runs; absent for an agent from before workloads, which only runs engines. */
  readonly workloads?: readonly string[];
  /** Id that changes with each start of the machine. */
  readonly bootId: string;
}
