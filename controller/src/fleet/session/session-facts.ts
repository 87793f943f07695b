/** What every controller knows of an agent's stream, whoever holds it. */
export interface SessionFacts {
  readonly controllerId: string;
  /** Milliseconds since 1970. */
  readonly connectedAt: number;
  /** Release of the agent, and digest of its code; the digest is empty for one that runs from a checkout. */
  readonly agentVersion: string;
  readonly agentDigest: string;
  /** Version of the machine's keeper; 0 when the agent told none. */
  readonly keeperProtocol: number;
  /** 1: its engine ends with its right to be the primary. Absent: that is not sure. */
  readonly rights?: number;
  /** Changes with each start of the machine. */
  readonly bootId: string;
}
