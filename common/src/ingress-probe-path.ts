/**
 * Path at which an ingress itself responds for each host that it serves: with 204 while it has a machine for requests,
 * and with 503 otherwise. No app gets requests for it.
 */
export const ingressProbePath = "/.well-known/holdfast-ingress";
