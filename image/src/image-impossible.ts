/** This host cannot make an image; the message says why and names the command that helps. */
export class ImageImpossible extends Error {
  override readonly name = "ImageImpossible";
}
