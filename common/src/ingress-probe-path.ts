/** Path at which an ingress itself responds with 204 for each host that it serves; no app gets requests for it. */
export const ingressProbePath = "/.well-known/holdfast-ingress";
