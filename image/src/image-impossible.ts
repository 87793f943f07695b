/** The error of a host that cannot build an image. The message has the reason, and the command that helps. */
export class ImageImpossible extends Error {
  override readonly name = "ImageImpossible";
}
