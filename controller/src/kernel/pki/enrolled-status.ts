/** An object's record of its enrolled process: a machine's agent, or a host. */
export interface EnrolledStatus {
  readonly enrollment: Enrollment | null;
  /** Serial of the only valid client certificate; a session with an older one is cut. */
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
  /** SHA-256 of the public key that the token was spent on; from then on the token is good for that key alone. */
  readonly spentBy?: string;
  /** Controllers that came with the token, host:port; absent in objects of earlier versions. */
  readonly controllers?: readonly string[];
  /** Fingerprint of the authority that came with the token; absent in objects of earlier versions. */
  readonly caFingerprint?: string;
}
