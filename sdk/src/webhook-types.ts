/** What the platform has accepted to do. */
export interface Accepted {
  readonly message: string;
}
