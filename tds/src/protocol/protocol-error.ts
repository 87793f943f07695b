/** Bytes of a client that do not follow MS-TDS. The connection ends; the process and its other sessions go on. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}
