/** Prefix of the path at which an authority requests the token of a challenge (RFC 8555, section 8.3). */
export const acmeChallengePath = "/.well-known/acme-challenge/";
