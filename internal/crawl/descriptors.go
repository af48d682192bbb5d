package crawl

// What a crawl has open beside what its workers have: the database, the ledger, the output and its
// indexes, the request log, the API and its clients, lookups of names, standard streams.
const ownDescriptors = 64

// Descriptors are how many files and connections a crawl may have open: least is what it cannot do
// without, a connection and a file for each worker; full what it takes at most, with all that a worker
// may spool, and with the connections that are kept between requests.
func (o *Options) Descriptors() (least, full int) {
	return ownDescriptors + 2*o.Workers, ownDescriptors + 5*o.Workers + o.Fetch.MaxIdleConns
}
