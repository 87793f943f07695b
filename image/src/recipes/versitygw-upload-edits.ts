import type { SourceEdit } from "../artifact.ts";

const posix = "backend/posix/posix.go";
const tmpfile = "backend/posix/with_otmpfile.go";
const lister = "backend/mp-lister.go";
const mkdir = "backend/mkdir.go";

/** Changes of versitygw 1.8.0 in uploads in parts and in the directories of objects; a part of `versitygwEdits`. */
export const uploadEdits: readonly SourceEdit[] = [
  // The completion in progress may fail, so a second one is to be repeated. AWS clients do that after this error.
  {
    file: posix,
    before: `			etag := multipartClaimToken
			if p.dataIntegrityEtag {
				etag, err = predictDataIntegrityFinalETag(activeUploadName)
				if err != nil {
					return res, "", err
				}
			}
			// Still in progress — treat as success for idempotency.
			return s3response.CompleteMultipartUploadResult{
				Bucket: &bucket,
				ETag:   &etag,
				Key:    &object,
			}, "", nil
`,
    after: `			return res, "", s3err.GetAPIError(s3err.ErrSlowDown)
`,
  },
  {
    file: posix,
    before: "	predictDataIntegrityFinalETag := func(",
    after: "	_ = func(",
  },
  // An object of the key proves nothing: it may be older than the upload, which may have been aborted. The object's
  // attribute below has the upload that it came from.
  {
    file: posix,
    before: `		if _, statErr := os.Stat(filepath.Join(bucket, object)); statErr == nil {
			etag := multipartClaimToken
`,
    after: `		if _, statErr := os.Stat(filepath.Join(bucket, object)); statErr == nil && p.isCompletedBy(bucket, object, uploadID) {
			etag := multipartClaimToken
`,
  },
  {
    file: posix,
    before: "func validatePartChecksum(",
    after: `// isCompletedBy is true if the object is the result of this upload in parts.
func (p *Posix) isCompletedBy(bucket, object, uploadID string) bool {
	stored, err := p.meta.RetrieveAttribute(nil, bucket, object, mpMetaKey)
	if err != nil {
		return false
	}
	mpMeta, err := backend.UnmarshalMpUploadMetadata(stored, false)
	return err == nil && mpMeta.UploadID == uploadID
}

func validatePartChecksum(`,
  },
  // SDKs repeat a request after an internal error, and this one fails each time.
  {
    file: posix,
    before: `		return res, "", fmt.Errorf("link object in namespace: %w", err)
`,
    after: `		if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.EEXIST) {
			return res, "", s3err.GetAPIError(s3err.ErrExistingObjectIsDirectory)
		}
		return res, "", fmt.Errorf("link object in namespace: %w", err)
`,
  },
  // A directory of objects is no object: its deletion changes nothing, as on S3.
  {
    file: posix,
    before:
      "			return nil, s3err.GetAPIError(s3err.ErrDirectoryNotEmpty)\n\t\t}\n\n\t\terr = p.meta.DeleteAttribute(objpath",
    after: "			return &s3.DeleteObjectOutput{}, nil\n\t\t}\n\n\t\terr = p.meta.DeleteAttribute(objpath",
  },
  // The server refused the markers that it had sent: uploads of the marker's key were left out, and an aborted one is
  // not found again.
  {
    file: posix,
    before: `		if keyMarker != "" && objectName <= keyMarker {
			continue
		}
`,
    after: `		if keyMarker != "" && (objectName < keyMarker || objectName == keyMarker && uploadIDMarker == "") {
			continue
		}
`,
  },
  {
    file: lister,
    before: `	if len(l.Uploads) == 0 {
		// key-marker provided but nothing after it => upload-id-marker can never be valid.
		return -1
	}
	firstKey := l.Uploads[0].Key
`,
    after: `	firstKey := l.KeyMarker
`,
  },
  { file: lister, before: "	return -1\n", after: "	return 0\n" },
  {
    file: lister,
    before: "	for i, up := range l.Uploads[startIndex:] {\n",
    after: "	for i, up := range l.Uploads[startIndex:] {\n		i += startIndex\n",
  },
  // A deletion removes empty directories while a request creates an object in them.
  {
    file: mkdir,
    before: `import (
	"io/fs"
`,
    after: `import (
	"errors"
	"io/fs"
`,
  },
  {
    file: mkdir,
    before: `func MkdirAll(path string, uid, gid int, doChown bool, dirPerm fs.FileMode) error {
`,
    after: `func MkdirAll(path string, uid, gid int, doChown bool, dirPerm fs.FileMode) error {
	err := mkdirAll(path, uid, gid, doChown, dirPerm)
	for attempt := 0; attempt < 100 && errors.Is(err, fs.ErrNotExist); attempt++ {
		err = mkdirAll(path, uid, gid, doChown, dirPerm)
	}
	return err
}

func mkdirAll(path string, uid, gid int, doChown bool, dirPerm fs.FileMode) error {
`,
  },
  { file: mkdir, before: "		err = MkdirAll(path[:j-1]", after: "		err = mkdirAll(path[:j-1]" },
  { file: tmpfile, before: "	maxDirRecreateRetries = 3\n", after: "	maxDirRecreateRetries = 20\n" },
  // The copy would replace the object step by step. It is only for other file systems.
  {
    file: tmpfile,
    before: `	if err != nil {
		// rename only works for files within the same filesystem
`,
    after: `	if err != nil && !errors.Is(err, syscall.EXDEV) {
		return err
	}
	if err != nil {
		// rename only works for files within the same filesystem
`,
  },
  {
    file: posix,
    before: `	if err != nil {
		return s3response.PutObjectOutput{}, s3err.GetAPIError(s3err.ErrExistingObjectIsDirectory)
	}

	// Set object tagging
`,
    after: `	if errors.Is(err, syscall.ENOSPC) {
		return s3response.PutObjectOutput{}, s3err.GetAPIError(s3err.ErrNoSpaceLeftOnDevice)
	}
	if err != nil {
		return s3response.PutObjectOutput{}, s3err.GetAPIError(s3err.ErrExistingObjectIsDirectory)
	}

	// Set object tagging
`,
  },
];
