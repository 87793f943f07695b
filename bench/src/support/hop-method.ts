const asIs = (bytes: Buffer) => bytes;

/** Bytes in, bytes out. */
export const hopMethod = {
  path: "/bench.Hop/Get",
  requestStream: false,
  responseStream: false,
  requestSerialize: asIs,
  requestDeserialize: asIs,
  responseSerialize: asIs,
  responseDeserialize: asIs,
};
