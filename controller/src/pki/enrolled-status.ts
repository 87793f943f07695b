/** What an object keeps of the one that speaks for it: a machine's agent, or a host. */
export interface EnrolledStatus {
  readonly enrollment: Enrollment | null;
  /** Serial of the one client certificate that is good; an older one is cut. */
  readonly certificate: {
    readonly serial: string;
    readonly previousSerial: string;
    /** When it begins and ends, milliseconds since 1970. */
    readonly beganAt: number;
    readonly expiresAt: number;
    /** Of the authorities by which it was issued. */
    readonly authorityGeneration: number;
  } | null;
}

/** The token that is good now. Spent by compare-and-set. */
export interface Enrollment {
  /** keyedHash of the token. */
  readonly tokenHash: string;
  readonly expiresAt: number;
  /** SHA-256 of the public key that it bought a certificate for; from then on it is good for that key alone. */
  readonly spentBy?: string;
  /** Controllers that the machine was told of with it, host:port; absent in objects of earlier versions. */
  readonly controllers?: readonly string[];
}
