/** A violation of the protocol (MS-TDS) by a client. Ends its connection; other connections are unaffected. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
