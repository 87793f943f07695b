/** One attempt to deliver, as users see it. */
export interface AttemptRecord {
  readonly id: string;
  readonly webhookId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly attempt: number;
  readonly responseStatus: number | null;
  readonly errorMessage: string | null;
  readonly deliveredAt: number | null;
  readonly beganAt: number;
  readonly durationMs: number;
}

/** What came of an attempt, and what is to follow. */
export interface EndedAttempt extends AttemptRecord {
  readonly deliveryId: string;
  readonly eventOccurredAt: number;
  /** When the next attempt is due; null when there is none. */
  readonly nextDueAt: number | null;
}
