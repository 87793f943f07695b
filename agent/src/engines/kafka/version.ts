/** The release that the image has. */
export const kafkaVersion = "3.9.2";
