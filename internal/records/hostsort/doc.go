// Package hostsort sorts any number of records by host in bounded memory. The records of a host
// keep the order in which they were added.
//
// A [Sorter] gathers records in memory, host by host, so that it sorts hosts and not records. When
// its memory is used up, it writes what it holds as a sorted run to a file without a name
// (internal/web/spool), and [Sorted] merges the runs. All sorters of a [Workspace] share its memory and its
// disk space. A sorter that can have no more of either still takes records, and reports that it is
// full: its owner takes the sorted records out and begins again. So no sorter waits for another.
//
// Hosts are in the order of [weburl.ReverseHost]: the hosts of a domain are adjacent, as they are in
// the database.
package hostsort
