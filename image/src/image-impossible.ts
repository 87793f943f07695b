/** This host cannot build an image; the message has the reason and the command that helps. */
export class ImageImpossible extends Error {
  override readonly name = "ImageImpossible";
}
