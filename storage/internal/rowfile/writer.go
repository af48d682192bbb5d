package rowfile

// AppendFill is the fill of the pages of buckets whose rows arrive in the order of their keys. With bbolt's half, the
// file would be a third larger.
const AppendFill = 0.9

// maxTransaction is how many bytes a Writer writes in one transaction.
const maxTransaction = 16 << 20

// Writer writes rows to a new database, in transactions of bounded size.
type Writer struct {
	DB     *DB
	Tx     *Tx     // at hand; nil: none
	Bucket *Bucket // at hand
	name   []byte
	size   int
}

// Begin has the rows that follow go into a bucket, which is made if there is none.
func (w *Writer) Begin(bucket []byte) error {
	w.name = bucket
	return w.open()
}

// open opens the bucket at hand in the transaction at hand.
func (w *Writer) open() (err error) {
	if w.Tx == nil {
		if w.Tx, err = w.DB.Begin(); err != nil {
			return err
		}
	}
	if w.Bucket, err = w.Tx.MakeBucket(w.name); err == nil {
		w.Bucket.Fill(AppendFill)
	}
	return err
}

// Put writes a row.
func (w *Writer) Put(k, v []byte) error {
	if w.size += len(k) + len(v); w.size > maxTransaction {
		if err := w.End(); err != nil {
			return err
		}
		if err := w.open(); err != nil {
			return err
		}
		w.size = len(k) + len(v)
	}
	return w.Bucket.Put(k, v)
}

// End commits the transaction at hand.
func (w *Writer) End() error {
	if w.Tx == nil {
		return nil
	}
	tx := w.Tx
	w.Tx = nil
	return tx.Commit()
}

// Drop ends the transaction at hand without a commit.
func (w *Writer) Drop() error {
	if w.Tx == nil {
		return nil
	}
	return w.Tx.Rollback()
}
