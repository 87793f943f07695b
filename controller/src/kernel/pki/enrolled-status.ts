/** Enrollment of a process in its object's status: of a machine's agent, or of a host. */
export interface EnrolledStatus {
  readonly enrollment: Enrollment | null;
  /** Serial of the only valid client certificate; a session with an older one is closed. */
  readonly certificate: {
    readonly serial: string;
    readonly previousSerial: string;
    /** Validity, in milliseconds since 1970. */
    readonly beganAt: number;
    readonly expiresAt: number;
    /** Generation of the authorities that issued it. */
    readonly authorityGeneration: number;
  } | null;
}

/** The current token. It is spent by compare-and-set. */
export interface Enrollment {
  /** Keyed hash of the token. */
  readonly tokenHash: string;
  readonly expiresAt: number;
  /** SHA-256 of the public key that spent the token; afterwards the token is valid for that key only. */
  readonly spentBy?: string;
  /** host:port of the controllers that were delivered with the token; absent in objects of earlier versions. */
  readonly controllers?: readonly string[];
  /** Fingerprint of the authority that was delivered with the token; absent in objects of earlier versions. */
  readonly caFingerprint?: string;
}
