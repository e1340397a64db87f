"""Transfer of topics between tasks: a sparse model beside hierarchical Dirichlet processes."""
