//go:build !core

package service

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	"github.com/amble-crawler/amble/internal/modules/urlfrontier/health"
	urlfrontierpb "github.com/amble-crawler/amble/internal/modules/urlfrontier/proto"
)

// healthService is gRPC's health service. The service is serving from its start until it closes.
type healthService struct{ s *Service }

func (h *healthService) status(name string) health.HealthCheckResponse_ServingStatus {
	switch {
	case name != "" && name != urlfrontierpb.URLFrontierName:
		return health.HealthCheckResponse_SERVICE_UNKNOWN
	case h.s.closing.Err() != nil:
		return health.HealthCheckResponse_NOT_SERVING
	}
	return health.HealthCheckResponse_SERVING
}

// Check implements the RPC.
func (h *healthService) Check(_ context.Context, r *health.HealthCheckRequest) (*health.HealthCheckResponse, error) {
	status := h.status(r.GetService())
	if status == health.HealthCheckResponse_SERVICE_UNKNOWN {
		return nil, connect.NewError(connect.CodeNotFound, errors.New("there is no such service"))
	}
	return &health.HealthCheckResponse{Status: status}, nil
}

// Watch implements the RPC: it sends the status now and when the service closes.
func (h *healthService) Watch(ctx context.Context, r *health.HealthCheckRequest,
	stream *connect.ServerStream[health.HealthCheckResponse]) error {
	callOf(ctx).mustRead(0)
	if err := stream.Send(&health.HealthCheckResponse{Status: h.status(r.GetService())}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return rpcError(ctx.Err())
	case <-h.s.closing.Done():
	}
	if err := stream.Send(&health.HealthCheckResponse{Status: h.status(r.GetService())}); err != nil {
		return err
	}
	return errClosing()
}
